#include "learner/learner.hpp"
#include "nodes/dense_nodes.hpp"
#include "nodes/sparse_nodes.hpp"

namespace mlca::MLCA_LEVEL {

namespace {

template <class Nodes>
std::shared_ptr<Learner> made(const Settings& settings, const State* state) {
    if (state == nullptr) return std::make_shared<LearnerOf<Nodes>>(settings);
    return std::make_shared<LearnerOf<Nodes>>(settings, *state);
}

}  // namespace

// Both storages are compiled together, because they share two fifths of their code.
std::shared_ptr<Learner> make_learner(bool sparse, const Settings& settings, const State* state) {
    return sparse || settings.incomplete ? made<SparseNodes>(settings, state) : made<DenseNodes>(settings, state);
}

}  // namespace mlca::MLCA_LEVEL
