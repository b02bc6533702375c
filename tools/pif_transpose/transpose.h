// The work of pif-transpose, apart from its command line. Row r of the matrix is record r of the file; record c of the
// output is its column c. Dibble 1990, section 5.4.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "matrix/shape.h"
#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"

namespace pif::transpose {

enum class Algorithm : std::uint8_t {
  kDirect,     // every worker transposes its own rows; their pieces meet at their destinations (direct.h)
  kRecursive,  // halves change places pass after pass, until a band fits into memory (5.4.1, recursive.h)
};
inline constexpr std::array<std::pair<Algorithm, const char*>, 2> kAlgorithms = {
    {{Algorithm::kDirect, "direct"}, {Algorithm::kRecursive, "recursive"}}};

// The user's options.
struct TransposeOptions : tool::OutputOptions, ShapeOptions {
  std::string source, target;
  Algorithm algorithm = Algorithm::kDirect;
  std::uint64_t memory = 0;  // bytes; 0: what the machine has to spare
  unsigned threads = 0;      // on each machine; 0: as many as it has cores for the workers
};

[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const TransposeOptions& wanted);
[[nodiscard]] Status work(tool::Worker& worker);
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller, const TransposeOptions& wanted);

}  // namespace pif::transpose
