// The namespace of everything compiled. The same source is compiled once a level of x86-64 (and once elsewhere), and
// two levels may live in one process, so each has a namespace of its own: mlca::v3, for instance.
#pragma once

#ifndef MLCA_LEVEL
#define MLCA_LEVEL plain
#endif
