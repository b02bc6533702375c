// Kept headers (put --header) that say something of the rows behind them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pif::transpose {

inline constexpr const char* kHeaderAttribute = "header";

// PLINK 1 .bed: two bits for each genotype, the least significant ones first; whether rows are variants, or samples.
bool is_bed(std::string_view header);
// The header of the same genotypes with rows and columns exchanged.
std::string other_bed(std::string_view header);

// The header of a binary bitmap (PBM, P4).
std::string pbm_header(std::uint64_t width, std::uint64_t height);

}  // namespace pif::transpose
