// The Python module. This file and cpu.cpp are compiled for any processor of the architecture, so that asking what
// the processor has, and refusing a module that it cannot run, never needs an instruction that it lacks.

#include "bindings.hpp"

#include <string>

#include "cpu.hpp"

NB_MODULE(MLCA_MODULE, module) {
    using namespace mlca::MLCA_LEVEL;
    const std::string level = MLCA_QUOTE(MLCA_LEVEL);
    if (!processor_has(level)) {
        throw nanobind::import_error(("this processor lacks instructions of x86-64-" + level).c_str());
    }
    module.def(
        "processor_has", [](const char* word) { return processor_has(word); }, nanobind::arg("level"),
        "Whether this processor runs modules of a level: \"v2\", \"v3\", \"v4\" or \"plain\".");
    bind_learner(module);
    bind_peers(module);
    bind_probes(module);
}
