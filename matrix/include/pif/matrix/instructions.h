// Kernels are compiled for several instruction sets; the best that the machine has is used (Highway's dispatch). This
// is for tests and measurements, which want each of them. Any thread, but use_only().
#pragma once

#include <cstdint>
#include <vector>

namespace pif::matrix {

using InstructionSet = std::int64_t;  // one of Highway's targets

// Those that kernels are compiled for and this machine has, the fastest last. There is always one.
std::vector<InstructionSet> instruction_sets();
// "AVX2", as Highway calls it; valid for ever.
const char* name_of(InstructionSet set);
// From now on all kernels of this process use this one. set: of instruction_sets(). Not while a kernel runs.
void use_only(InstructionSet set);

}  // namespace pif::matrix
