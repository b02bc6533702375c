// A file on a real disk of which nothing is in memory, to see what is read of it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pif/base/handle.h"
#include "pif/tool/scratch.h"

namespace pif::tool {

inline std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// Of a mapping, how many bytes of these are in memory, in whole pages.
inline std::size_t resident_bytes(std::span<const std::byte> mapped) {
  const auto page = page_bytes();
  const auto at = reinterpret_cast<std::uintptr_t>(mapped.data()), begin = at / page * page;
  std::vector<unsigned char> pages((at + mapped.size() - begin + page - 1) / page);
  if (::mincore(reinterpret_cast<void*>(begin), at + mapped.size() - begin, pages.data()) != 0) return 0;
  std::size_t count = 0;
  for (const unsigned char is_there : pages) count += is_there & 1;
  return count * page;
}

// Whether all of them are in memory, or come into it because they were asked for.
inline bool comes(std::span<const std::byte> mapped) {
  const auto is_there = [&] { return resident_bytes(mapped) >= mapped.size(); };
  for (int i = 0; i < 10'000 && !is_there(); ++i) ::poll(nullptr, 0, 1);
  return is_there();
}

// The bytes as a Scratch has them, mapped; empty where the file system keeps files in memory (tmpfs).
inline Scratch cold_file(std::span<const std::byte> bytes) {
  std::string path = (std::filesystem::temp_directory_path() / "pif-cold-XXXXXX").string();
  Handle handle;
  handle.fd = UniqueFd(::mkstemp(path.data()));
  if (!handle.fd) return {};
  ::unlink(path.c_str());
  const int file = handle.fd.get();
  Scratch scratch(std::move(handle), "test");
  const bool is_written = scratch.append(bytes).has_value() && scratch.map().has_value() && ::fsync(file) == 0 &&
                          ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0;
  if (!is_written || resident_bytes(scratch.bytes()) > 0) return {};
  return scratch;
}

}  // namespace pif::tool
