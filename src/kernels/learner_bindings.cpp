#include "bindings.hpp"

namespace mlca::MLCA_LEVEL {

void bind_learner(nanobind::module_&) {}

}  // namespace mlca::MLCA_LEVEL
