// The end of a step: an instance whose nearest nodes are known joins the nearest or becomes a node, and is counted.
#pragma once

#include <cstdint>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

// `work` has what was found, and the votes. Either all of it happens or, if memory fails, nothing. The model is locked.
template <class ModelHere>
void commit(ModelHere& model, const typename ModelHere::Instance& instance, std::int64_t threshold, bool joining, const double* bandwidths, typename ModelHere::Work& work) {
    const bool is_full = !joining && model.is_full();
    const std::int64_t given_up = is_full ? model.drawn() : -1;
    model.prepare(instance, work.found, joining, work);
    if (joining) {
        model.join_winner(instance, threshold, work.found, work.voting, work);
    } else if (is_full && given_up < 0) {
        model.pass_by(instance, work.found, work.voting, work);
    } else {
        model.reserve_node(model.n_nodes + 1, instance.x);
        model.create_node(model.n_nodes, instance.x, bandwidths);
        model.become_node(instance, bandwidths, work.found, work.voting, work, given_up);
    }
}

}  // namespace mlca::MLCA_LEVEL
