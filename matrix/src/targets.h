// To be included before anything of Highway's: the instruction sets that kernels are compiled for. Left out are one
// that is like the next better one, and those whose vectors have no size that is known to the compiler.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
