// Working space that is kept for the next who needs it: a prediction of one row takes less time than making room for it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

// As many are kept as were ever in use together. What a failure has left unfinished is not given back.
template <class T>
class Idle {
public:
    template <class Make>
    std::unique_ptr<T> borrow(Make make) {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            if (!kept_.empty()) {
                std::unique_ptr<T> one = std::move(kept_.back());
                kept_.pop_back();
                return one;
            }
        }
        return make();
    }

    void give_back(std::unique_ptr<T> one) {
        const std::lock_guard<std::mutex> guard(mutex_);
        kept_.push_back(std::move(one));
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> kept_;
};

}  // namespace mlca::MLCA_LEVEL
