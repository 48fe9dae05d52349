// A function that is passed down and called, never kept. Where it is called once a row this is as fast as a template, and what calls
// it is compiled once, not once for each function.
#pragma once

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
public:
    template <class Function>
    FunctionRef(const Function& function) noexcept  // NOLINT: meant to be implicit
        : function_(&function), call_([](const void* called, Arguments... arguments) -> Result { return (*static_cast<const Function*>(called))(arguments...); }) {}

    Result operator()(Arguments... arguments) const { return call_(function_, arguments...); }

private:
    const void* function_;
    Result (*call_)(const void*, Arguments...);
};

}  // namespace mlca::MLCA_LEVEL
