#include "bindings.hpp"

namespace mlca::MLCA_LEVEL {

void bind_peers(nanobind::module_&) {}

}  // namespace mlca::MLCA_LEVEL
