// What the controller of a sort tells its workers, and what they tell it at their end.
#pragma once

#include <string>
#include <string_view>

#include "cost.h"
#include "sort.h"
#include "token/token_merge.h"

namespace pif::sort {

std::string pack(const SortOptions& wanted);
SortOptions unpack(std::string_view text);

struct Outcome {
  FileLength put_out;  // by this worker
  MergeCounts counts;
  double sort_seconds = 0, merge_seconds = 0;
  Constants constants;
};
std::string pack(const Outcome& outcome);
Outcome unpack_outcome(const std::string& text);

}  // namespace pif::sort
