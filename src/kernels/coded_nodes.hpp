// Everything that screening keeps of the nodes: cells and their four bits, and sixteen bits for a closer look.
//
// It is derived from the weights and never asked for a decision, so it can be made anew at any time. Cells follow the
// nodes: when there are four times as many, boundaries are placed anew and all nodes are written again, which costs each
// node a third more in all.
#pragma once

#include <cstdint>

#include "cells.hpp"
#include "codes.hpp"
#include "fine.hpp"
#include "fine_cells.hpp"
#include "level.hpp"
#include "memory.hpp"
#include "sharing.hpp"

namespace mlca::MLCA_LEVEL {

class CodedNodes {
public:
    // Rows with more attributes are not coded: sums of sixteen-bit terms could overflow.
    static constexpr std::int64_t MOST_ATTRIBUTES = 1 << 15;

    explicit CodedNodes(std::int64_t n_attributes)
        : cells_(n_attributes),
          codes_(n_attributes),
          widths_(n_attributes),
          fine_cells_(n_attributes),
          fine_(rounded_up(n_attributes, FINE_LANES)) {}

    // Whether nodes have been coded; below some number of nodes it does not pay.
    bool ready() const noexcept { return cells_.built(); }
    const Cells& cells() const noexcept { return cells_; }
    const Codes& codes() const noexcept { return codes_; }
    const FineWidths& widths() const noexcept { return widths_; }
    const FineCells& fine_cells() const noexcept { return fine_cells_; }
    const std::int16_t* fine(std::int64_t node) const noexcept { return fine_[node]; }

    // Make room for n nodes in all; a failure leaves everything as it was.
    void reserve(std::int64_t n) {
        codes_.reserve(n);
        fine_.reserve(n);
    }

    // Whether the first n nodes ask for cells placed anew; fewer than `first` are not worth any.
    bool due(std::int64_t n, std::int64_t first) const noexcept { return n >= first && cells_.due(n); }

    // The same n nodes with cells placed anew; `weights(node)` are the attributes of a node. It takes its time, and
    // changes nothing here: others may go on reading.
    template <class Weights>
    CodedNodes renewed(std::int64_t n, const Weights& weights, Sharing sharing = UNSHARED) const {
        CodedNodes next(cells_.n_attributes());
        next.reserve(n);
        next.cells_.build(n, weights, sharing);
        next.widths_.build(n, weights);
        next.fine_cells_.build(next.cells_, next.widths_);
        sharing(n, ENTERED_TOGETHER, [&](std::int64_t low, std::int64_t high) {
            for (std::int64_t node = low; node < high; ++node) next.enter(node, weights(node));
        });
        return next;
    }

    // Write a node: the next one, one that has moved, or one in the place of a node that was withdrawn. Threads may write nodes
    // side by side if those between two multiples of ENTERED_TOGETHER are written by one.
    static constexpr std::int64_t ENTERED_TOGETHER = BLOCK;
    void enter(std::int64_t node, const double* weights) noexcept {
        if (!ready()) return;
        std::uint8_t cells_of_node[MOST_ATTRIBUTES];
        widths_.encode(weights, fine_[node]);
        fine_cells_.assign(weights, fine_[node], cells_, cells_of_node);
        codes_.enter(node, cells_of_node);
    }

private:
    Cells cells_;
    Codes codes_;
    FineWidths widths_;
    FineCells fine_cells_;
    Rows<std::int16_t> fine_;
};

}  // namespace mlca::MLCA_LEVEL
