#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "backup_archive.h"
#include "zstd_file.h"

namespace pif::backup {
namespace {

constexpr const char* kHeadAttribute = "user.pif";

struct FreeArchive {
  void operator()(struct archive* tar) const { archive_write_free(tar); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};
using Entry = std::unique_ptr<archive_entry, FreeEntry>;

Status sync_folder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return fail_errno(errno, "cannot make what is in " + folder + " durable");
  return {};
}

Status check_length(int fd, const std::string& path, std::uint64_t bytes) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return fail_errno(errno, "cannot look at " + path);
  if (static_cast<std::uint64_t>(about.st_size) == bytes) return {};
  return fail(Code::kCorrupt, fmt::format("{} has {} bytes, where {} were written: does another backup go there, too?",
                                          path, about.st_size, bytes));
}

tl::unexpected<Error> is_begun(const std::string& path) {
  return fail(Code::kExists,
              path + " is there already: another backup goes there, or was ended; remove it, or take another folder");
}

Result<UniqueFd> open_part(const std::string& path, std::uint64_t bytes) {
  constexpr mode_t kOwnersAlone = 0600;
  const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (bytes == 0 ? O_CREAT | O_EXCL : O_APPEND);
  UniqueFd fd(::open(path.c_str(), flags, kOwnersAlone));
  if (!fd && errno == EEXIST) return is_begun(path);
  if (!fd) return fail_errno(errno, "cannot make " + path);
  PIF_TRY(check_length(fd.get(), path, bytes));
  return fd;
}

}  // namespace

struct ArchiveWriter::Impl {
  Impl(std::string f, std::string name, const Options& o, UniqueFd fd)
      : folder(std::move(f)),
        path(archive_path(folder, name)),
        backup(o.backup),
        file(std::move(fd), path + ".part", o.bytes, o.level, o.threads) {}

  std::string folder, path;
  std::uint64_t backup;
  ZstdFile file;
  Status written;        // by what libarchive called
  bool is_over = false;  // what libarchive writes now is the end of a tar, which another frame is to follow
  std::int64_t now = std::time(nullptr);
  std::unique_ptr<struct archive, FreeArchive> tar;

  static la_ssize_t write(struct archive*, void* self, const void* bytes, size_t size) {
    Impl& impl = *static_cast<Impl*>(self);
    if (impl.is_over) return static_cast<la_ssize_t>(size);
    if (impl.written) impl.written = impl.file.write({static_cast<const std::byte*>(bytes), size});
    return impl.written ? static_cast<la_ssize_t>(size) : -1;
  }
  Status failed() {
    if (!written) return written;
    return fail(Code::kInternal, fmt::format("{}: {}", path, archive_error_string(tar.get())));
  }
  [[nodiscard]] Status open();
};

// No blocks of tar's: each write goes on at once, so that a frame ends where an entry does.
Status ArchiveWriter::Impl::open() {
  tar.reset(archive_write_new());
  const bool is_open = archive_write_set_format_pax(tar.get()) == ARCHIVE_OK &&
                       archive_write_set_format_option(tar.get(), "pax", "xattrheader", "SCHILY") == ARCHIVE_OK &&
                       archive_write_set_bytes_per_block(tar.get(), 0) == ARCHIVE_OK &&
                       archive_write_open(tar.get(), this, nullptr, &Impl::write, nullptr) == ARCHIVE_OK;
  return is_open ? Status() : failed();
}

ArchiveWriter::ArchiveWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArchiveWriter::ArchiveWriter(ArchiveWriter&&) noexcept = default;
ArchiveWriter::~ArchiveWriter() {
  if (impl_) impl_->is_over = true;  // libarchive ends what it frees
}

Result<ArchiveWriter> ArchiveWriter::open(const std::string& folder, const std::string& name, const Options& options) {
  const std::string path = archive_path(folder, name);
  if (::access(path.c_str(), F_OK) == 0)
    return fail(Code::kExists, path + " is there already: back up into another folder, or remove it");
  PIF_TRY_VALUE(UniqueFd fd, open_part(path + ".part", options.bytes));
  ArchiveWriter writer(std::make_unique<Impl>(folder, name, options, std::move(fd)));
  PIF_TRY(writer.impl_->open());
  return writer;
}

Status ArchiveWriter::add(const std::string& name, message::EntryHead head, std::span<const std::byte> content) {
  seal(head, impl_->backup, content);
  const std::string attribute = head.SerializeAsString();
  const Entry entry(archive_entry_new());
  archive_entry_set_pathname_utf8(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0600);
  archive_entry_set_mtime(entry.get(), impl_->now, 0);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
  archive_entry_xattr_add_entry(entry.get(), kHeadAttribute, attribute.data(), attribute.size());
  const bool is_added = archive_write_header(impl_->tar.get(), entry.get()) >= ARCHIVE_WARN &&
                        (content.empty() || archive_write_data(impl_->tar.get(), content.data(), content.size()) ==
                                                static_cast<la_ssize_t>(content.size())) &&
                        archive_write_finish_entry(impl_->tar.get()) == ARCHIVE_OK;
  return is_added ? Status() : impl_->failed();
}

Status ArchiveWriter::add(const std::string& name, message::EntryKind kind, const google::protobuf::MessageLite& what) {
  message::EntryHead head;
  head.set_kind(kind);
  const std::string text = what.SerializeAsString();
  return add(name, head, std::as_bytes(std::span(text)));
}

Result<std::uint64_t> ArchiveWriter::pause() {
  PIF_TRY(impl_->file.end_frame());
  impl_->is_over = true;
  return impl_->file.bytes();
}

Result<std::uint64_t> ArchiveWriter::finish() {
  if (archive_write_close(impl_->tar.get()) != ARCHIVE_OK) return fail(impl_->failed().error());
  impl_->is_over = true;
  PIF_TRY(impl_->file.end_frame());
  PIF_TRY(impl_->file.sync());
  if (::rename((impl_->path + ".part").c_str(), impl_->path.c_str()) != 0)
    return fail_errno(errno, "cannot give " + impl_->path + " its name");
  PIF_TRY(sync_folder(impl_->folder));
  return impl_->file.bytes();
}

}  // namespace pif::backup
