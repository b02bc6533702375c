#include "zstd_file.h"

#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/write_all.h"

namespace pif::backup {

ZstdFile::ZstdFile(UniqueFd fd, std::string path, std::uint64_t at, int level, unsigned threads)
    : fd_(std::move(fd)), path_(std::move(path)), bytes_(at), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize()) {
  PIF_ASSERT(context_ != nullptr, level);
  (void)ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
  (void)ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  if (threads > 0) (void)ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_nbWorkers, static_cast<int>(threads));
}

Status ZstdFile::write(std::span<const std::byte> bytes) {
  return bytes.empty() ? failed_ : compress(bytes, ZSTD_e_continue);
}

Status ZstdFile::end_frame() { return compress({}, ZSTD_e_end); }

Status ZstdFile::sync() {
  if (failed_ && ::fsync(fd_.get()) != 0) failed_ = fail_errno(errno, "cannot write to " + path_);
  return failed_;
}

Status ZstdFile::compress(std::span<const std::byte> bytes, ZSTD_EndDirective end) {
  ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
  for (bool is_done = false; failed_ && !is_done;) {
    ZSTD_outBuffer out = {out_.data(), out_.size(), 0};
    const std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in, end);
    if (ZSTD_isError(left) != 0) {
      failed_ = fail(Code::kInternal, fmt::format("{} cannot be compressed: {}", path_, ZSTD_getErrorName(left)));
      break;
    }
    failed_ = write_all(fd_.get(), std::span(out_).first(out.pos), "cannot write to " + path_);
    bytes_ += out.pos;
    is_done = end == ZSTD_e_end ? left == 0 : in.pos == in.size;
  }
  return failed_;
}

}  // namespace pif::backup
