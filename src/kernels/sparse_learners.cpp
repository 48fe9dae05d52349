#include "sparse_nodes.hpp"
#include "making.hpp"

namespace mlca::MLCA_LEVEL {

std::shared_ptr<Learner> make_sparse_learner(const Settings& settings, const State* state) { return make_learner<SparseNodes>(settings, state); }

}  // namespace mlca::MLCA_LEVEL
