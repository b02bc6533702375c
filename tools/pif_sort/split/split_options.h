// What both split merges are asked for.
#pragma once

#include <cstdint>

#include "runs/loaded.h"

namespace pif::sort {

struct SplitOptions {
  bool unique = false;       // of records with equal keys only the first is put out
  First first;               // and of these so many; the runs have been made with it
  std::uint64_t memory = 0;  // of this worker; 0: enough

  // How many records of `records` may be put out.
  std::uint64_t put_out_max(std::uint64_t records) const {
    return first.records > 0 ? std::min(first.records, records) : records;
  }
};

}  // namespace pif::sort
