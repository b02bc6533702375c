// Options of both split merges.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runs/loaded.h"

namespace pif::sort {

struct SplitOptions {
  bool unique = false;                  // of records with equal keys only the first is put out
  First first;                          // and of these so many; the runs have been made with it
  std::uint64_t memory = 0;             // of this worker; 0: enough
  std::span<const std::string> header;  // records that come before all others in the output

  // How many of so many sorted records may be put out;
  std::uint64_t sorted_max(std::uint64_t records) const {
    return first.records > 0 ? std::min(first.records, records) : records;
  }
  // of so many records, those of the header among them.
  std::uint64_t put_out_max(std::uint64_t records) const {
    return header.size() + sorted_max(records - std::min<std::uint64_t>(header.size(), records));
  }
};

}  // namespace pif::sort
