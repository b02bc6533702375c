#include "transfer/put_files.h"

#include <fcntl.h>
#include <unistd.h>

#include "codec/codec_pipe.h"
#include "command/interrupt.h"
#include "command/io.h"
#include "names/entries.h"
#include "pif/base/handle.h"
#include "pif/client/bulk.h"
#include "transfer/transfers.h"

namespace pif::cli {
namespace {

constexpr int kAttempts = 4;  // at a file: an LFS that comes back makes three views

Status within(const PutJob& job, Error error) {
  error.text = job.local + " to " + job.target + ": " + error.text;
  return fail(std::move(error));
}

Result<UniqueFd> open_local(const std::string& local) {
  UniqueFd fd(::open(local.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot read " + local);
  return fd;
}

}  // namespace

PutJob PutJob::of(const std::string& local, const std::string& target, const struct stat& about) {
  PutJob job{local, target, about.st_mode & kModeBits, 0, {}};
  if (!S_ISREG(about.st_mode)) return job;
  job.bytes = static_cast<std::uint64_t>(about.st_size);
  job.modified_ns = modified_ns_of(about);
  return job;
}

Compression LocalFormat::compression_of(const std::string& local) const {
  const bool by_name = decompress == kByName || (decompress.empty() && text != TextKind::kPlain);
  return by_name ? compression_of_name(local) : compression_called(decompress);
}

bool PutFiles::fits_batch(const PutJob& job) const {
  return job.modified_ns && job.bytes <= kBatch.alone && format_.header.empty() && format_.text == TextKind::kPlain &&
         format_.compression_of(job.local) == Compression::kNone;
}

CreateOptions PutFiles::options_for(const PutJob& job) const {
  CreateOptions create = create_;
  create.mode = job.mode;
  create.modified_ns = job.modified_ns;
  create.is_small =
      job.modified_ns && job.bytes <= kSmallFileBytes && format_.compression_of(job.local) == Compression::kNone;
  return create;
}

Status PutFiles::put_one(Client& client, const PutJob& job, int fd) const {
  if (tree_.looks_at_existing() && job.modified_ns) {
    PIF_TRY_VALUE(const auto jobs, new_ones(client, {job}));
    if (jobs.empty()) return {};
  }
  if (fd >= 0) return store(client, job, fd);
  PIF_TRY_VALUE(const UniqueFd opened, open_local(job.local));
  return store(client, job, opened.get());
}

// Those that are not there yet as they are here.
Result<std::vector<PutJob>> PutFiles::new_ones(Client& client, const std::vector<PutJob>& jobs) const {
  if (!tree_.looks_at_existing()) return jobs;
  std::vector<std::string> targets;
  for (const PutJob& job : jobs) targets.push_back(job.target);
  PIF_TRY_VALUE(const auto entries, client.stat_many(targets));
  std::vector<PutJob> out;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (entries[i] && is_same_file(client, tree_, jobs[i].target, *entries[i], jobs[i].local))
      tally_.skipped();
    else
      out.push_back(jobs[i]);
  }
  return out;
}

Result<Header> PutFiles::take_header(int fd, const PutJob& job, CreateOptions& create) const {
  PIF_TRY_VALUE(Header header, read_header(fd, format_.header, job.local));
  if (header.record_length && !format_.has_record_length && create.format.is_fixed()) {
    create.format = Format::fixed(*header.record_length);
    create.inherits_format = false;
  }
  create.attributes[std::string(kHeaderAttribute)] = header.bytes;
  return header;
}

// A file is made in one view. Where that has changed meanwhile it is begun anew, if its bytes can be read again.
Status PutFiles::store(Client& client, const PutJob& job, int fd) const {
  const off_t begin = ::lseek(fd, 0, SEEK_CUR);
  for (int attempt = 1;; ++attempt) {
    const Status stored = store_once(client, job, fd);
    const bool is_again = !stored && stored.error().code == Code::kOldView && attempt < kAttempts;
    if (!is_again || begin < 0 || ::lseek(fd, begin, SEEK_SET) < 0 || !check_interrupt()) return stored;
  }
}

Status PutFiles::store_once(Client& client, const PutJob& job, int fd) const {
  const Compression compression = format_.compression_of(job.local);
  if (compression == Compression::kNone) return store_bytes(client, job, fd, [] { return Status(); });
  PIF_TRY_VALUE(CodecPipe pipe, CodecPipe::decompress(fd, compression, job.local));
  const Status stored = store_bytes(client, job, pipe.fd(), [&] { return pipe.finish(); });
  const Status read = pipe.finish();  // why the bytes ended early, and so were no such text
  return read || stored ? stored : within(job, read.error());
}

Result<BulkCounts> PutFiles::import(File& file, const PutJob& job, int fd) const {
  const BulkOptions options = tally_.options(&interrupted_);
  return format_.text == TextKind::kPlain ? import_stream(file, fd, options)
                                          : import_entries(file, fd, format_.text, job.local, options);
}

Status PutFiles::store_bytes(Client& client, const PutJob& job, int fd, const std::function<Status()>& finish) const {
  CreateOptions create = options_for(job);
  Header header;
  if (!format_.header.empty()) {
    PIF_TRY_VALUE(header, take_header(fd, job, create));
  }
  auto file = client.create(job.target, create);
  if (!file) return fail(at(job.target, file.error()));
  const auto moved = import(*file, job, fd);
  Status done = check_interrupt();
  if (done && !moved) done = fail(moved.error());
  if (done) done = finish();
  if (done) done = header.check_data(moved->bytes, job.local);
  FileLength file_length;  // asked for before, because a file is closed when it is committed
  if (done) {
    auto known = file->file_length();
    done = known ? file->commit() : fail(known.error());
    if (known) file_length = *known;
  }
  if (!done) {
    // The first error counts; what cannot be removed now, the server removes when we are gone.
    static_cast<void>(file->abort().has_value());
    return within(job, done.error());
  }
  count(*file, job, file_length, moved->bytes);
  return {};
}

Status PutFiles::put_batch(Client& client, const std::vector<PutJob>& all) const {
  PIF_TRY_VALUE(const std::vector<PutJob> jobs, new_ones(client, all));
  if (jobs.empty()) return {};
  std::vector<Client::NewFile> wanted;
  for (const PutJob& job : jobs) wanted.push_back({job.target, options_for(job)});
  auto created = client.create_many(wanted);
  std::vector<File> files;
  std::vector<const PutJob*> which;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Status filled = check_interrupt();
    if (filled && !created[i]) filled = fail(at(jobs[i].target, created[i].error()));
    if (filled) {
      filled = fill(*created[i], jobs[i]);
      if (!filled && filled.error().code == Code::kOldView) {
        put_again(client, *created[i], jobs[i]);
        continue;
      }
    }
    if (!filled && ends_all(filled.error())) return filled;
    if (filled) {
      files.push_back(std::move(*created[i]));
      which.push_back(&jobs[i]);
    } else {
      tally_.failures().add(filled.error());
    }
  }
  return commit(client, files, which);
}

void PutFiles::put_again(Client& client, File& file, const PutJob& job) const {
  static_cast<void>(file.abort().has_value());
  tally_.failures().add(put_one(client, job));
}

Status PutFiles::fill(File& file, const PutJob& job) const {
  PIF_TRY_VALUE(const UniqueFd fd, open_local(job.local));
  const auto moved = import_stream(file, fd.get(), tally_.options(&interrupted_));
  return moved ? Status() : within(job, moved.error());
}

Status PutFiles::commit(Client& client, std::vector<File>& files, const std::vector<const PutJob*>& jobs) const {
  std::vector<File*> pointers;
  for (File& file : files) pointers.push_back(&file);
  Status end;
  auto outcome = client.commit_many(pointers);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FileLength file_length = files[i].file_length_seen();
    if (outcome[i]) {
      count(files[i], *jobs[i], file_length, file_length.bytes);
      continue;
    }
    if (outcome[i].error().code == Code::kOldView) {
      put_again(client, files[i], *jobs[i]);
      continue;
    }
    Status failed = within(*jobs[i], outcome[i].error());
    if (end && ends_all(failed.error()))
      end = failed;
    else if (!ends_all(failed.error()))
      tally_.failures().add(failed.error());
  }
  return end;
}

void PutFiles::count(const File& file, const PutJob& job, const FileLength& file_length, std::uint64_t bytes) const {
  tally_.done(job.local, bytes, [&]() -> Json {
    return {{"local", job.local},
            {"path", job.target},
            {"id", file.id()},
            {"records", file_length.records},
            {"bytes", file_length.bytes},
            {"width", file.layout().width()}};
  });
}

}  // namespace pif::cli
