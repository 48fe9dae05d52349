// Declarations shared by the files of the bindings.
#pragma once

#include <nanobind/nanobind.h>

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL {

// Each function adds the functions and classes of one part to the module.
void bind_learner(nanobind::module_& module);
void bind_peers(nanobind::module_& module);
void bind_probes(nanobind::module_& module);

}  // namespace mlca::MLCA_LEVEL
