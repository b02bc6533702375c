// A committed file cannot become shorter, or change under parity, in place; that takes a *rewrite*: a new file with its
// bytes, which takes its place when it is committed.
#pragma once

#include <cstdint>

#include "pif/client/client.h"

namespace pif::client {

struct RewriteOptions {
  std::uint64_t keep = UINT64_MAX;        // bytes of the start that the new file gets; at most all
  std::uint64_t bytes_max = 1024u << 20;  // kUnsupported if that is more
};

// A file being created in the place of `of`, as Client::create_instead_of makes it, with its first bytes; position and
// length are behind them. `of` is a committed file of `client` with fixed records. Errors: of reading and writing.
[[nodiscard]] Result<File> rewrite(Client& client, File& of, const RewriteOptions& options = {});

// The first bytes of `from`, of which there are so many, into `to`, a file being created that has none yet.
[[nodiscard]] Status copy_start(File& from, File& to, std::uint64_t bytes);

// Gives `file` this length in bytes: one being created as File::resize does; a committed one that is open for writing
// by a rewrite, which `file` then is, or by zeros behind its end. kInvalid: it has no fixed records; kPermission: it is
// open for reading; the errors of rewrite().
[[nodiscard]] Status resize(Client& client, File& file, std::uint64_t bytes);

}  // namespace pif::client
