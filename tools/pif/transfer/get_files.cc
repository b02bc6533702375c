#include "transfer/get_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "command/interrupt.h"
#include "command/io.h"
#include "names/entries.h"
#include "pif/base/write_all.h"
#include "pif/client/bulk.h"
#include "transfer/header.h"
#include "transfer/salvage.h"
#include "transfer/transfers.h"

namespace pif::cli {

std::string header_of(const File& file) {
  const auto found = file.attributes().find(std::string(kHeaderAttribute));
  return found == file.attributes().end() ? "" : found->second;
}

namespace {

// The library knows the local file by a descriptor only.
Error with_local_name(Error error, const std::string& name) {
  constexpr std::string_view kLocal = "the local file";
  const std::size_t at = error.text.find(kLocal);
  if (at != std::string::npos) error.text.replace(at, kLocal.size(), name);
  return error;
}

}  // namespace

Result<std::uint64_t> write_file(Client& client, const std::string& path, int fd, const std::string& name,
                                 const BulkOptions& options) {
  auto file = client.open(path);
  if (!file) return fail(at(path, file.error()));
  const std::string header = header_of(*file);
  PIF_TRY(write_all(fd, std::as_bytes(std::span(header)), "cannot write to " + name));
  const auto moved = export_stream(*file, fd, options);
  if (!moved) return fail(at(path, with_local_name(moved.error(), name)));
  PIF_TRY(file->close());
  return moved->bytes + header.size();
}

namespace {

Result<StaleCopy> write_stale(File& file, const std::string& path, Range records, int fd, const std::string& name) {
  auto salvaged = salvage(file, records, fd, name);
  if (!salvaged) return fail(at(path, salvaged.error()));
  const std::uint64_t all = file.file_length_seen().records;
  const std::uint64_t of = std::min(records.end, all) - std::min(records.begin, all);
  PIF_TRY(file.close());
  return StaleCopy{salvaged->bytes, salvaged->missing == 0 ? "" : salvaged->text(path, of, file.format().is_fixed())};
}

}  // namespace

Result<StaleCopy> write_stale_file(Client& client, const std::string& path, int fd, const std::string& name) {
  auto file = client.open(path);
  if (!file) return fail(at(path, file.error()));
  const std::string header = header_of(*file);
  PIF_TRY(write_all(fd, std::as_bytes(std::span(header)), "cannot write to " + name));
  PIF_TRY_VALUE(StaleCopy copy, write_stale(*file, path, {0, UINT64_MAX}, fd, name));
  copy.bytes += header.size();
  return copy;
}

Result<StaleCopy> write_stale_records(Client& client, const std::string& path, Range records, int fd,
                                      const std::string& name) {
  auto file = client.open(path);
  if (!file) return fail(at(path, file.error()));
  return write_stale(*file, path, records, fd, name);
}

bool GetFiles::fits_batch(const GetJob& job) const {
  if (compression_ != Compression::kNone) return false;
  struct stat about {};
  const bool is_special = ::lstat(job.local.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
  return !is_special && job.entry.marks.empty() && job.entry.file_length.bytes <= kSmallFileBytes;
}

// A link is replaced, whatever it leads to.
bool GetFiles::is_there(Client& client, const GetJob& job) const {
  struct stat about {};
  if (!tree_.looks_at_existing() || ::lstat(job.local.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  if (!is_same_file(client, tree_, job.path, job.entry, job.local)) return false;
  tally_.skipped();
  return true;
}

namespace {

Result<NewFile> new_file(const GetJob& job) {
  return job.tree != nullptr ? job.tree->new_file(job.local, job.entry.mode)
                             : NewFile::create(job.local, job.entry.mode);
}

// Nothing: it is to be a file like any other.
Result<UniqueFd> special_file(const GetJob& job) {
  if (job.tree != nullptr) return job.tree->special_file(job.local);
  struct stat about {};
  const bool is_special = ::stat(job.local.c_str(), &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
  if (!is_special) return UniqueFd();
  UniqueFd fd(::open(job.local.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot write to " + job.local);
  return fd;
}

}  // namespace

Result<std::uint64_t> GetFiles::write(Client& client, const GetJob& job, int fd) const {
  return write_compressed(fd, compression_, job.local, [&](int to) { return write_bytes(client, job, to); });
}

Result<std::uint64_t> GetFiles::write_bytes(Client& client, const GetJob& job, int fd) const {
  const bool may_miss_records = !job.entry.marks.empty() && !job.entry.is_placed;
  if (!may_miss_records) return write_file(client, job.path, fd, job.local, tally_.options());
  PIF_TRY_VALUE(const StaleCopy copy, write_stale_file(client, job.path, fd, job.local));
  if (!copy.missing.empty()) tally_.incomplete(copy.missing);
  return copy.bytes;
}

// Devices and pipes are written to as they are, anything else is replaced when all of it is there.
Status GetFiles::get_one(Client& client, const GetJob& job) const {
  if (is_there(client, job)) return {};
  std::uint64_t bytes = 0;
  PIF_TRY_VALUE(const UniqueFd special, special_file(job));
  if (special) {
    PIF_TRY_VALUE(bytes, write(client, job, special.get()));
  } else {
    PIF_TRY_VALUE(NewFile file, new_file(job));
    PIF_TRY_VALUE(bytes, write(client, job, file.fd()));
    PIF_TRY(file.set_modified(job.entry.modified_ns));
    PIF_TRY(file.publish(no_clobber_));
  }
  count(job, bytes);
  return {};
}

Status GetFiles::get_batch(Client& client, const std::vector<GetJob>& all) const {
  std::vector<const GetJob*> jobs;
  std::vector<std::string> paths;
  for (const GetJob& job : all) {
    if (is_there(client, job)) continue;
    jobs.push_back(&job);
    paths.push_back(job.path);
  }
  auto opened = client.open_small_many(paths);
  std::vector<File*> files;
  std::vector<const GetJob*> which;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (opened[i]) {
      files.push_back(&*opened[i]);
      which.push_back(jobs[i]);
    } else if (ends_all(opened[i].error())) {
      return fail(at(paths[i], opened[i].error()));
    } else {
      tally_.failures().add(at(paths[i], opened[i].error()));
    }
  }
  const auto contents = client.read_many(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Status done = contents[i] ? write_local(*which[i], header_of(*files[i]), *contents[i])
                                    : Status(fail(at(which[i]->path, contents[i].error())));
    if (!done && ends_all(done.error())) return done;
    tally_.failures().add(done);
  }
  return client.close_many(files);
}

Status GetFiles::write_local(const GetJob& job, const std::string& header, std::span<const std::byte> bytes) const {
  PIF_TRY_VALUE(NewFile file, new_file(job));
  const std::string what = "cannot write to " + job.local;
  if (!header.empty()) PIF_TRY(write_all(file.fd(), std::as_bytes(std::span(header)), what));
  PIF_TRY(write_all(file.fd(), bytes, what));
  PIF_TRY(file.set_modified(job.entry.modified_ns));
  PIF_TRY(file.publish(no_clobber_));
  count(job, header.size() + bytes.size());
  return {};
}

void GetFiles::count(const GetJob& job, std::uint64_t bytes) const {
  tally_.done(job.local, bytes, [&]() -> Json { return {{"path", job.path}, {"local", job.local}, {"bytes", bytes}}; });
}

}  // namespace pif::cli
