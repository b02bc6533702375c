// A file that is written in frames of zstd. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <zstd.h>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::backup {

class ZstdFile {
 public:
  // `fd` stands at the file's end, which is byte `at`. threads: that compress beside the caller's; a library without
  // threads uses none.
  ZstdFile(UniqueFd fd, std::string path, std::uint64_t at, int level, unsigned threads);

  // Errors: the disk's, naming the file. From then on each call gives the same.
  [[nodiscard]] Status write(std::span<const std::byte> bytes);
  [[nodiscard]] Status end_frame();
  [[nodiscard]] Status sync();
  std::uint64_t bytes() const { return bytes_; }  // of the file, once a frame is ended

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  [[nodiscard]] Status compress(std::span<const std::byte> bytes, ZSTD_EndDirective end);

  UniqueFd fd_;
  std::string path_;
  std::uint64_t bytes_;
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::vector<std::byte> out_;
  Status failed_;
};

}  // namespace pif::backup
