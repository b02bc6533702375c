#include "files/copy_file.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "command/failures.h"
#include "command/run_tool.h"
#include "files/copy_forks.h"
#include "names/entries.h"
#include "pif/base/inheriting.h"

namespace pif::cli {
namespace {

constexpr std::uint64_t kToolBytes = 16u << 20;  // from here on starting workers pays
constexpr std::size_t kBlockBytes = 4u << 20;

Status copy_fixed(File& source, File& copy, std::uint64_t records) {
  const std::uint64_t length = source.format().record_length;
  const std::uint64_t block = std::max<std::uint64_t>(1, kBlockBytes / length);
  std::vector<std::byte> buffer(std::min(block, records) * length);
  for (std::uint64_t first = 0; first < records;) {
    PIF_TRY(check_interrupt());
    PIF_TRY_VALUE(const std::uint64_t got, source.read_at(first, buffer, std::min(block, records - first)));
    if (got == 0) return fail(Code::kStaleFile, "it became shorter while it was read");
    const std::uint64_t bytes =
        std::min(got * length, source.file_length_seen().bytes - first * length);  // the last one may be short
    PIF_TRY(copy.write(std::span(buffer).first(bytes)));
    first += got;
  }
  return {};
}

Status copy_variable(File& source, File& copy, std::uint64_t records) {
  for (std::uint64_t first = 0; first < records;) {
    PIF_TRY(check_interrupt());
    PIF_TRY_VALUE(const RecordBatch batch, source.read_batch_at(first, records - first, kBlockBytes));
    if (batch.lengths.empty()) return fail(Code::kStaleFile, "it became shorter while it was read");
    PIF_TRY(copy.write_batch(batch.lengths, batch.data));
    first += batch.lengths.size();
  }
  return {};
}

}  // namespace

Status copy_records(File& source, File& copy, std::uint64_t records) {
  return source.format().is_fixed() ? copy_fixed(source, copy, records) : copy_variable(source, copy, records);
}

namespace {

CreateOptions options_like(const File& source, const Entry& entry, bool no_clobber) {
  CreateOptions create;
  create.format = source.format();
  create.nodes.assign(source.nodes().begin(), source.nodes().end());
  const auto bevies = source.layout().bevies();
  create.bevies.assign(bevies.begin(), bevies.end());
  if (bevies.empty()) create.bevy = kNoBevies;
  create.inherits_layout = false;
  create.same_host_ok = true;       // as its source is
  create.mode = entry.mode & 0777;  // a copy gives nobody its owner's rights
  create.attributes = source.attributes();
  create.exclusive = no_clobber;
  create.placed = source.is_placed();
  return create;
}

// A fork has its place already.
Result<CreateOptions> options_for(Client& client, const File& source, const Entry& entry, const std::string& to,
                                  bool no_clobber) {
  CreateOptions create = options_like(source, entry, no_clobber);
  PIF_TRY_VALUE(const bool to_fork, is_fork(client, to));
  if (!to_fork) return create;
  create.nodes.clear();
  create.bevies.clear();
  create.bevy = 0;
  create.inherits_layout = true;
  return create;
}

// Workers copy records, of files with a layout of their own.
Result<bool> needs_client(Client& client, const Entry& entry, const std::string& from, const std::string& to) {
  if (entry.is_placed) return true;
  PIF_TRY_VALUE(const bool to_fork, is_fork(client, to));
  if (to_fork) return true;
  PIF_TRY_VALUE(const File source, client.open(from));
  return has_forks(client, source);
}

Status copy_here(Client& client, const Entry& entry, const std::string& from, const std::string& to, bool no_clobber) {
  PIF_TRY_VALUE(File source, client.open(from, Client::Mode::kHold));
  PIF_TRY_VALUE(const FileLength file_length, source.file_length());
  PIF_TRY_VALUE(const CreateOptions create, options_for(client, source, entry, to, no_clobber));
  PIF_TRY_VALUE(const bool with_forks, has_forks(client, source));
  if (file_length.records == 0 && !with_forks) return client.create_empty(to, create);
  PIF_TRY_VALUE(File copy, client.create(to, create));
  Status done;
  if (!source.is_placed()) done = copy_records(source, copy, file_length.records);
  if (done && with_forks) done = copy_forks(client, source, copy);
  if (done) done = copy.commit();
  if (!done)
    static_cast<void>(
        copy.abort().has_value());  // the first error counts; what cannot be removed now, the server removes
  return done;
}

Status copy_by_tool(const Program& program, const std::string& from, const std::string& to, bool no_clobber) {
  std::vector<std::string> arguments;
  if (no_clobber) arguments.emplace_back("--no-clobber");
  arguments.insert(arguments.end(), {from, to});
  const auto report = run_tool(program, "pif-copy", arguments);
  return report ? Status{} : Status(fail(report.error()));
}

}  // namespace

Status copy_file(const Program& program, Client& client, const Entry& entry, const std::string& from,
                 const std::string& to, const CopyOptions& options) {
  bool is_large = entry.file_length.bytes >= kToolBytes;
  if (is_large) {
    PIF_TRY_VALUE(const bool is_for_client, needs_client(client, entry, from, to));
    is_large = !is_for_client;
  }
  Status copied = is_large ? copy_by_tool(program, from, to, options.no_clobber)
                           : copy_here(client, entry, from, to, options.no_clobber);
  // Where an LFS is away there is no worker; with parity its records are still there.
  const bool is_without_workers =
      is_large && !copied && copied.error().code == Code::kUnavailable && entry.is_protected;
  if (is_without_workers) copied = copy_here(client, entry, from, to, options.no_clobber);
  if (!copied) return fail(at(from, copied.error()));
  return options.preserve ? copy_owner(client, entry, to) : Status{};
}

Status copy_owner(Client& client, const Entry& entry, const std::string& path) {
  PIF_TRY_VALUE(const Entry copy, client.stat(path));
  const auto change = [&](const AttributeChange& asked) -> Status {
    const Status changed = client.change_attributes(path, asked);
    return changed || changed.error().code == Code::kPermission ? Status{} : changed;
  };
  AttributeChange group, owner;
  if (entry.group != copy.group) group.group = entry.group;
  if (entry.mode != copy.mode) group.mode = entry.mode;
  if (group.group || group.mode) PIF_TRY(change(group));
  if (entry.owner != copy.owner) {  // last: who has given it away may change nothing more
    owner.owner = entry.owner;
    PIF_TRY(change(owner));
  }
  return {};
}

}  // namespace pif::cli
