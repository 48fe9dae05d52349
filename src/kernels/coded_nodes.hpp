// Everything that screening keeps of the nodes: cells and their four bits, and sixteen bits for a closer look.
//
// It is derived from the weights and never asked for a decision, so it can be made anew at any time. Cells follow the
// nodes: when these have doubled, boundaries are placed anew and all nodes are written again, which costs each node
// about twice in all.
#pragma once

#include <cstdint>
#include <utility>

#include "cells.hpp"
#include "codes.hpp"
#include "fine.hpp"
#include "level.hpp"
#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

class CodedNodes {
public:
    // Rows with more attributes are not coded: sums of sixteen-bit terms could overflow.
    static constexpr std::int64_t MOST_ATTRIBUTES = 1 << 15;

    explicit CodedNodes(std::int64_t n_attributes)
        : cells_(n_attributes),
          codes_(n_attributes),
          widths_(n_attributes),
          fine_(rounded_up(n_attributes, FINE_LANES)),
          own_(static_cast<std::size_t>(n_attributes)) {}

    // Whether nodes have been coded; below some number of nodes it does not pay.
    bool ready() const noexcept { return cells_.built(); }
    const Cells& cells() const noexcept { return cells_; }
    const Codes& codes() const noexcept { return codes_; }
    const FineWidths& widths() const noexcept { return widths_; }
    const std::int16_t* fine(std::int64_t node) const noexcept { return fine_[node]; }

    // Make room for n nodes, of which the first n_nodes exist, and place the cells anew if it is time. A failure leaves
    // everything as it was. `weights(node)` are the attributes of a node.
    template <class Weights>
    void prepare(std::int64_t n, std::int64_t n_nodes, const Weights& weights) {
        codes_.reserve(n);
        fine_.reserve(n);
        if (!cells_.due(n_nodes)) return;
        Cells cells(cells_.n_attributes());
        FineWidths widths(cells_.n_attributes());
        cells.build(n_nodes, weights);
        widths.build(n_nodes, weights);
        cells_ = std::move(cells);
        widths_ = std::move(widths);
        for (std::int64_t node = 0; node < n_nodes; ++node) enter(node, weights(node));
    }

    // Write a node: the next one, one that has moved, or one in the place of a node that was withdrawn.
    void enter(std::int64_t node, const double* weights) noexcept {
        if (!ready()) return;
        cells_.assign(weights, own_.data());
        codes_.enter(node, own_.data());
        widths_.encode(weights, fine_[node]);
    }

private:
    Cells cells_;
    Codes codes_;
    FineWidths widths_;
    Rows<std::int16_t> fine_;
    Array<std::uint8_t> own_;
};

}  // namespace mlca::MLCA_LEVEL
