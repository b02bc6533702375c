// A compressed stream as a descriptor of what is in it: a thread decompresses or compresses at the other end of a pipe.
// So whoever reads or writes files need not know of it. Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "codec/compression.h"
#include "pif/base/result.h"

namespace pif::cli {

class CodecPipe {
 public:
  // Bytes of `fd`, from where that stands, can be read from fd(). kind: any but kNone; name: of `fd`, for messages.
  // `fd` outlives it, and nobody else uses it meanwhile.
  [[nodiscard]] static Result<CodecPipe> decompress(int fd, Compression kind, const std::string& name);
  // Bytes written to fd() go to `fd`.
  [[nodiscard]] static Result<CodecPipe> compress(int fd, Compression kind, const std::string& name);
  CodecPipe(CodecPipe&&) noexcept;
  ~CodecPipe();  // what is compressed and not finished has no end

  int fd() const;
  // Nothing more is read or written: closes fd() and waits for the thread. When decompressing: the error of what could
  // be read, none if the reader did not go on to the end. When compressing: all is written, and has an end. Again: the
  // same.
  [[nodiscard]] Status finish();

 private:
  struct Impl;
  explicit CodecPipe(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::cli
