// Files out of a file system: what `get` does with each, one at a time or many small ones together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/codec_pipe.h"
#include "codec/compression.h"
#include "pif/client/client.h"
#include "transfer/local_tree.h"
#include "transfer/tally.h"
#include "transfer/tree_options.h"

namespace pif::cli {

// A file and where it goes.
struct GetJob {
  std::string path;
  std::string local;
  Entry entry;
  const LocalTree* tree =
      nullptr;  // that `local` is in; null: it is as it was typed, and a device may be behind a link
};

// Compresses what f(fd) writes to `fd`, whose name is for messages. Returns the result of f, or why that cannot be
// written.
template <typename F>
auto write_compressed(int fd, Compression compression, const std::string& name, const F& f) -> decltype(f(fd)) {
  if (compression == Compression::kNone) return f(fd);
  PIF_TRY_VALUE(CodecPipe pipe, CodecPipe::compress(fd, compression, name));
  auto written = f(pipe.fd());
  if (written) PIF_TRY(pipe.finish());
  return written;
}

// The header that `put --header` has kept; empty: none.
std::string header_of(const File& file);
// All of a file to a descriptor, its header first. Returns bytes written.
[[nodiscard]] Result<std::uint64_t> write_file(Client& client, const std::string& path, int fd, const std::string& name,
                                               const BulkOptions& options);

// Reads what can be read of a marked file (--stale). Returns a text about the rest; empty: there is none.
struct StaleCopy {
  std::uint64_t bytes = 0;
  std::string missing;
};
[[nodiscard]] Result<StaleCopy> write_stale_file(Client& client, const std::string& path, int fd,
                                                 const std::string& name);
// The same of a range, without the header.
[[nodiscard]] Result<StaleCopy> write_stale_records(Client& client, const std::string& path, Range records, int fd,
                                                    const std::string& name);

// Any thread; each with a Client of its own.
class GetFiles {
 public:
  // compression: of the local files. All outlive this.
  GetFiles(bool no_clobber, Compression compression, const TreeOptions& tree, Tally& tally)
      : no_clobber_(no_clobber), compression_(compression), tree_(tree), tally_(tally) {}

  // Whether the file may be one of a batch.
  bool fits_batch(const GetJob& job) const;
  [[nodiscard]] Status get_one(Client& client, const GetJob& job) const;
  // Together. Failures are added to the tally's, but for those that end all.
  [[nodiscard]] Status get_batch(Client& client, const std::vector<GetJob>& jobs) const;

 private:
  [[nodiscard]] Result<std::uint64_t> write(Client& client, const GetJob& job, int fd) const;
  [[nodiscard]] Result<std::uint64_t> write_bytes(Client& client, const GetJob& job, int fd) const;
  [[nodiscard]] bool is_there(Client& client, const GetJob& job) const;
  // header and bytes as a local file
  [[nodiscard]] Status write_local(const GetJob& job, const std::string& header,
                                   std::span<const std::byte> bytes) const;
  void count(const GetJob& job, std::uint64_t bytes) const;

  const bool no_clobber_;
  const Compression compression_;
  const TreeOptions& tree_;
  Tally& tally_;
};

}  // namespace pif::cli
