// The work of pif-sort, apart from its command line.
//
// Dibble 1990, section 5.3, sorts every component where it lies and then merges sub-files pairwise, with a token that
// says whose turn it is (token_sort.h). By default the merge is split instead: every worker finds, in all sorted
// components at once, exactly the part that is its share of the result, and merges that. Nothing is serial, and every
// record moves once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "keys/keys.h"
#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"

namespace pif::sort {

// How the sorted components become one file. All give the same bytes.
enum class MergeKind : std::uint8_t {
  kSplit,      // every worker merges its own share of all components
  kToken,      // pairs of sub-files, pass after pass, with a token between their readers (5.3.2)
  kPipelined,  // the same, all passes at once (5.3.6)
};
inline constexpr std::array<std::pair<MergeKind, const char*>, 3> kMerges = {
    {{MergeKind::kSplit, "split"}, {MergeKind::kToken, "token"}, {MergeKind::kPipelined, "pipelined"}}};
inline constexpr std::uint64_t kTokenBatch = 16384;  // records per block of a sub-file

// The user's options.
struct SortOptions : tool::OutputOptions {
  std::vector<std::string> sources;  // operands (local.h)
  std::string target;
  std::string temporary;  // folder for files that never get a name; empty: that of the output, or of an input
  KeyOptions keys;
  bool unique = false;
  bool merge_inputs = false;         // each is said to be in order
  std::uint64_t top = 0;             // only so many, the first ones of the order; 0: all. With kSplit
  std::uint64_t header_records = 0;  // of each input, left out; those of the first one come first in the output
  std::vector<std::string> header;   // these, with their delimiters: from the controller to its workers
  bool check = false;
  std::uint64_t check_by_workers =
      64u << 20;             // files of so many bytes; starting workers for less is not worth its time
  std::uint64_t memory = 0;  // bytes; 0: what the machine has to spare
  unsigned threads = 0;      // on each machine; 0: as many as it has cores for the workers
  MergeKind merge = MergeKind::kSplit;
  std::uint64_t token_batch = kTokenBatch;  // 0: figure 5.4, one record per hop, in blocks of one record
};

[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const SortOptions& wanted);
[[nodiscard]] Status work(tool::Worker& worker);
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller, const SortOptions& wanted);

}  // namespace pif::sort
