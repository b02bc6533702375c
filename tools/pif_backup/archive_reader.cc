#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <cerrno>

#include <fmt/format.h>

#include "backup_archive.h"
#include "pif/base/limits.h"

namespace pif::backup {
namespace {

constexpr const char* kHeadAttribute = "user.pif";
constexpr std::size_t kReadBytes = 256u << 10;
constexpr std::int64_t kContentBytesMax = kRecordLengthMax + kSegmentBytes;

struct FreeArchive {
  void operator()(struct archive* tar) const { archive_read_free(tar); }
};

bool read_head(archive_entry* entry, message::EntryHead& head) {
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t bytes = 0;
  archive_entry_xattr_reset(entry);
  while (archive_entry_xattr_next(entry, &name, &value, &bytes) == ARCHIVE_OK)
    if (name == std::string_view(kHeadAttribute)) return head.ParseFromArray(value, static_cast<int>(bytes));
  return false;
}

}  // namespace

struct ArchiveReader::Impl {
  Impl(std::string p, UniqueFd f) : path(std::move(p)), fd(std::move(f)), tar(archive_read_new()) {}

  tl::unexpected<Error> damaged(std::string_view how) const {
    return fail(Code::kCorrupt,
                fmt::format("{} {}: it was changed or cut since the backup; restore from another one", path, how));
  }
  tl::unexpected<Error> unreadable() const {
    const char* const text = archive_error_string(tar.get());
    return damaged(fmt::format("cannot be read to its end ({})", text != nullptr ? text : "it is not an archive"));
  }
  [[nodiscard]] Status read_content(std::int64_t size, std::vector<std::byte>& content);

  std::string path;
  UniqueFd fd;
  std::unique_ptr<struct archive, FreeArchive> tar;
};

Status ArchiveReader::Impl::read_content(std::int64_t size, std::vector<std::byte>& content) {
  if (size < 0 || size > kContentBytesMax) return damaged("has an entry of impossible length");
  content.resize(static_cast<std::size_t>(size));
  for (std::size_t got = 0; got < content.size();) {
    const la_ssize_t more = archive_read_data(tar.get(), content.data() + got, content.size() - got);
    if (more <= 0) return unreadable();
    got += static_cast<std::size_t>(more);
  }
  return {};
}

ArchiveReader::ArchiveReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArchiveReader::ArchiveReader(ArchiveReader&&) noexcept = default;
ArchiveReader::~ArchiveReader() = default;

Result<ArchiveReader> ArchiveReader::open(const std::string& folder, const std::string& name, std::uint64_t at) {
  const std::string path = archive_path(folder, name);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return fail_errno(errno, "cannot read the backup's " + path);
  if (::lseek(fd.get(), static_cast<off_t>(at), SEEK_SET) < 0) return fail_errno(errno, "cannot read " + path);
  ArchiveReader reader(std::make_unique<Impl>(path, std::move(fd)));
  struct archive* const tar = reader.impl_->tar.get();
  archive_read_support_filter_zstd(tar);
  archive_read_support_format_tar(tar);
  if (archive_read_open_fd(tar, reader.impl_->fd.get(), kReadBytes) != ARCHIVE_OK) return reader.impl_->unreadable();
  return reader;
}

Result<bool> ArchiveReader::next(ArchiveEntry& entry, std::uint64_t backup) {
  archive_entry* found = nullptr;
  const int got = archive_read_next_header(impl_->tar.get(), &found);
  if (got == ARCHIVE_EOF) return false;
  if (got < ARCHIVE_WARN) return impl_->unreadable();
  const char* const name = archive_entry_pathname_utf8(found);
  entry.name = name != nullptr ? name : "";
  entry.head.Clear();
  if (!read_head(found, entry.head)) return impl_->damaged("has an entry that is no backup's");
  PIF_TRY(impl_->read_content(archive_entry_size(found), entry.content));
  if (entry.head.kind() == message::HEAD || is_intact(entry.head, backup, entry.content)) return true;
  return impl_->damaged(fmt::format("has wrong bytes in {}", entry.name));
}

Result<message::ArchiveHead> ArchiveReader::head() {
  ArchiveEntry entry;
  PIF_TRY_VALUE(const bool is_there, next(entry, 0));
  message::ArchiveHead head;
  if (!is_there || entry.head.kind() != message::HEAD ||
      !head.ParseFromArray(entry.content.data(), static_cast<int>(entry.content.size())))
    return impl_->damaged("does not begin as a backup does");
  if (head.version() > kArchiveVersion)
    return fail(Code::kVersion,
                fmt::format("{} has format {}, and this program knows formats up to {}: use a newer one", impl_->path,
                            head.version(), kArchiveVersion));
  if (!is_intact(entry.head, head.backup(), entry.content)) return impl_->damaged("has wrong bytes in its head");
  return head;
}

Result<std::uint64_t> ArchiveReader::bytes() const {
  struct stat about {};
  if (::fstat(impl_->fd.get(), &about) != 0) return fail_errno(errno, "cannot look at " + impl_->path);
  return static_cast<std::uint64_t>(about.st_size);
}

}  // namespace pif::backup
