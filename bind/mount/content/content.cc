#include "content/content.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::mount {
namespace {

// Programs that write behind the end leave a hole. One of this size is filled with zeros; a larger one makes a version.
constexpr std::uint64_t kGapFilledMax = 1u << 20;

// What has no bytes that could be changed anywhere.
Status check_changeable(const Entry& entry) {
  if (!entry.is_placed && entry.format.is_fixed()) return {};
  return fail(Code::kReadOnly, fmt::format("{} has {}: through a mount it can only be read", entry.name,
                                           entry.is_placed ? "forks" : "records of variable length"));
}

}  // namespace

Content::Content(Client& client, Entry entry, std::optional<File> opened, std::uint64_t rewrite_max)
    : client_(client), rewrite_max_(rewrite_max), entry_(std::move(entry)), file_(std::move(opened)) {}

Content::Content(Client& client, Client::CreatedNow created, std::uint64_t rewrite_max)
    : client_(client),
      rewrite_max_(rewrite_max),
      state_(State::kTruncated),
      entry_(std::move(created.entry)),
      version_(std::move(created.file)) {}

std::uint64_t Content::size_at_server() const {
  PIF_ASSERT(unsent_ == nullptr || !version_, state_);
  if (unsent_) return unsent_->size();
  return version_ ? version_->file_length_seen().bytes : entry_.file_length.bytes;
}
std::uint64_t Content::size() const {
  return gathered_.is_empty() ? size_at_server() : std::max(size_at_server(), gathered_.end());
}

Entry Content::entry() const {
  Entry entry = entry_;
  entry.file_length.bytes = size();
  return entry;
}

Entry Content::shown(Entry entry) const {
  std::uint64_t& bytes = entry.file_length.bytes;
  if (!is_clean())
    bytes = size();
  else if (entry.id == entry_.id)
    bytes = std::max(bytes, size());
  if (is_touched()) {
    entry.modified_ns = std::max(entry.modified_ns, touched_ns_);
    entry.changed_ns = std::max(entry.changed_ns, touched_ns_);
  }
  return entry;
}

void Content::touch(std::int64_t wall_ns) {
  if (unsent_)
    unsent_->set_time(wall_ns, false);
  else
    touched_ns_ = wall_ns;
  if (unsent_ || is_unlinked_) entry_.modified_ns = entry_.changed_ns = wall_ns;
}

// ---- the file that is read, or written ----

Status Content::open(Client::Mode mode) {
  PIF_ASSERT(!version_ && unsent_ == nullptr, state_);
  PIF_TRY_VALUE(file_, client_.open_by_id(entry_.id, mode));
  entry_.is_protected = file_->entry().is_protected;  // of an unsent file nobody knew
  return {};
}

Result<File*> Content::readable() {
  if (version_) return &*version_;
  if (!file_) {
    PIF_TRY(open(Client::Mode::kRead));
  }
  return &*file_;
}

Result<File*> Content::writable() {
  if (version_) return &*version_;
  if (!writes_) {
    PIF_TRY(open(Client::Mode::kWrite));
    writes_ = true;
  }
  return &*file_;
}

Status Content::hold() {
  if (!unsent_) PIF_TRY(readable());
  return {};
}

void Content::take_attributes(const Entry& entry) {
  entry_.owner = entry.owner;
  entry_.group = entry.group;
  entry_.mode = entry.mode;
  entry_.modified_ns = entry.modified_ns;
  entry_.changed_ns = entry.changed_ns;
}

void Content::take_change(const AttributeChange& change) {
  if (change.mode) entry_.mode = *change.mode;
  if (change.owner) entry_.owner = *change.owner;
  if (change.group) entry_.group = *change.group;
  if (change.modified_ns) entry_.modified_ns = *change.modified_ns;
}

void Content::change_unlinked(const AttributeChange& change) {
  PIF_ASSERT(is_unlinked_, state_);
  take_change(change);
}

void Content::rest() {
  PIF_ASSERT(gathered_.is_empty(), gathered_.end());
  if (is_unlinked_) return;  // it could not be opened again
  file_.reset();
  writes_ = false;
}

void Content::take_newer(Entry entry, std::optional<File> opened) {
  PIF_ASSERT(is_clean(), state_);
  entry_ = std::move(entry);
  file_ = std::move(opened);
  writes_ = false;
}

// ---- new versions ----

// Of a file that has no name: one that is never committed.
Result<File> Content::create_unlinked(std::uint64_t keep) {
  if (keep > rewrite_max_) return fail(Code::kUnsupported, "a file without a name would be copied, and is too large");
  CreateOptions options;
  options.format = entry_.format;
  auto made = client_.create(folder_ + "/.unlinked", options);
  while (!made && made.error().code == Code::kNotFound && !folder_.empty()) {  // its folder has gone, too, or moved
    folder_.resize(folder_.rfind('/'));
    made = client_.create(folder_ + "/.unlinked", options);
  }
  if (!made || keep == 0) return made;
  PIF_TRY_VALUE(File* const from, readable());
  PIF_TRY(client::copy_start(*from, *made, keep));
  return made;
}

// With the first bytes of the file as it is.
Status Content::begin_version(std::uint64_t keep) {
  PIF_ASSERT(state_ == State::kCommitted && gathered_.is_empty(), state_);
  PIF_TRY(check_changeable(entry_));
  if (is_unlinked_) {
    PIF_TRY_VALUE(version_, create_unlinked(keep));
    state_ = State::kWritten;
  } else if (keep == 0) {
    PIF_TRY_VALUE(version_, client_.create_instead_of(entry_.id));
    state_ = State::kTruncated;
  } else {
    PIF_TRY_VALUE(File* const from, readable());
    PIF_TRY_VALUE(version_, client::rewrite(client_, *from, {keep, rewrite_max_}));
    state_ = State::kWritten;
  }
  PIF_ASSERT(version_.has_value() && state_ != State::kCommitted, state_);
  file_.reset();
  writes_ = false;
  return {};
}

Status Content::publish() {
  PIF_ASSERT(version_.has_value() && gathered_.is_empty(), state_);
  if (auto committed = version_->commit(); !committed) {
    if (committed.error().code == Code::kStaleFile) is_unlinked_ = true;  // removed, or replaced, by others
    failed_ = committed;
    return committed;
  }
  entry_.id = version_->id();
  entry_.file_length = version_->file_length_seen();
  version_.reset();
  state_ = State::kCommitted;
  return {};
}

// ---- reading and writing ----

Result<std::size_t> Content::read(std::span<std::byte> out, std::uint64_t offset) {
  if (unsent_) return unsent_->read(out, offset);
  // What is gathered, and a hole in front of it.
  const bool has_all = gathered_.is_empty() || offset + out.size() <= std::min(gathered_.begin(), size_at_server());
  if (!has_all) PIF_TRY(send());
  if (is_forgotten()) return 0;
  PIF_TRY_VALUE(File* const file, readable());
  PIF_TRY_VALUE(const std::size_t done, file->pread(out, offset));
  if (!version_) entry_.file_length = file->file_length_seen();
  return done;
}

Status Content::prepare_append() {
  if (state_ != State::kCommitted) return {};
  PIF_TRY(check_changeable(entry_));
  if (is_forgotten()) return begin_version(0);
  PIF_TRY_VALUE(File* const file, writable());
  PIF_TRY_VALUE(entry_.file_length, file->file_length());
  return {};
}

Status Content::prepare(std::uint64_t offset) {
  PIF_TRY(prepare_append());
  if (state_ != State::kCommitted) return {};
  const std::uint64_t end = entry_.file_length.bytes;
  const bool in_place = offset < end ? !entry_.is_protected : offset - end <= kGapFilledMax;
  return in_place ? Status() : begin_version(end);
}

Status Content::add(std::span<const std::byte> in, std::uint64_t offset, Time now) {
  gathered_.add(offset, in, now);
  written_at_ = now;
  if (state_ == State::kTruncated) state_ = State::kWritten;
  PIF_ASSERT(state_ != State::kTruncated && gathered_.end() >= offset + in.size(), state_, offset);
  return gathered_.is_full() ? send() : Status();
}

Status Content::write(std::span<const std::byte> in, std::uint64_t offset, Time now) {
  PIF_TRY(failed_);
  if (in.empty()) return {};
  if (unsent_) PIF_TRY(prepare_unsent(std::max(size(), offset + in.size())));
  if (unsent_) {
    unsent_->write(in, offset);
    return {};
  }
  if (!gathered_.takes(offset, in.size())) PIF_TRY(send());
  if (gathered_.is_empty()) {
    PIF_TRY(prepare(offset));
    appends_ = false;
  }
  return add(in, offset, now);
}

Status Content::append(std::span<const std::byte> in, Time now) {
  PIF_TRY(failed_);
  if (in.empty()) return {};
  if (unsent_) PIF_TRY(send_waiting());
  if (unsent_) return write(in, size(), now);
  const bool goes_on = appends_ && gathered_.takes(gathered_.end(), in.size());
  if (!goes_on) PIF_TRY(send());
  if (gathered_.is_empty()) {
    PIF_TRY(prepare_append());
    appends_ = true;
  }
  return add(in, size(), now);
}

Status Content::send_to_committed() {
  PIF_ASSERT(state_ == State::kCommitted && !gathered_.is_empty(), state_);
  PIF_TRY_VALUE(File* const file, writable());
  if (appends_) {
    PIF_TRY_VALUE(const std::uint64_t at, file->append_bytes(gathered_.bytes()));
    has_moved_ |= at != gathered_.begin();
  } else {
    PIF_TRY_VALUE(const std::size_t done, file->pwrite(gathered_.bytes(), gathered_.begin()));
    PIF_ASSERT(done == gathered_.bytes().size(), done);
  }
  entry_.file_length = file->file_length_seen();
  return {};
}

Status Content::send() {
  if (gathered_.is_empty()) return {};
  Status sent;
  if (!version_) {
    sent = send_to_committed();
  } else if (auto done = version_->pwrite(gathered_.bytes(), gathered_.begin()); !done) {
    sent = fail(std::move(done.error()));
    failed_ = sent;
  }
  gathered_.clear();
  return sent;
}

// The committed file, by zeros.
Status Content::grow(std::uint64_t size) {
  PIF_ASSERT(size > entry_.file_length.bytes, size, entry_.file_length.bytes);
  PIF_TRY_VALUE(File* const file, writable());
  const std::byte zero{};
  PIF_TRY(file->pwrite(std::span(&zero, 1), size - 1));
  entry_.file_length = file->file_length_seen();
  return {};
}

Status Content::note_same() {
  if (is_unlinked_) return {};
  PIF_TRY_VALUE(File* const file, writable());
  PIF_TRY(file->pwrite({}, 0));
  return {};
}

Status Content::truncate(std::uint64_t size) {
  PIF_TRY(failed_);
  if (unsent_ && size == this->size()) return {};
  if (unsent_) PIF_TRY(prepare_unsent(size));
  if (unsent_) return {};
  PIF_TRY(send());
  if (state_ == State::kCommitted) {
    PIF_TRY(check_changeable(entry_));
    if (!is_forgotten()) {
      PIF_TRY_VALUE(File* const file, readable());
      PIF_TRY_VALUE(entry_.file_length, file->file_length());
    }
    const std::uint64_t end = entry_.file_length.bytes;
    if (size == end) return note_same();
    if (size > end && size - end <= kGapFilledMax && !is_forgotten()) return grow(size);
    PIF_TRY(begin_version(std::min(size, end)));
  }
  PIF_ASSERT(version_.has_value(), state_);
  if (size == version_->file_length_seen().bytes) return {};
  state_ = State::kWritten;
  return version_->resize(size);
}

// ---- closing ----

Status Content::commit() {
  PIF_TRY(failed_);
  if (unsent_) {
    close_unsent();
    return send_waiting();
  }
  PIF_TRY(send());
  if (is_unlinked_) return {};
  PIF_TRY(version_ ? publish() : writes_ ? file_->sync() : Status());
  touched_ns_ = 0;  // the server has its time
  return {};
}

Status Content::flush() {
  if (unsent_) {
    if (size() > 0) close_unsent();
    return failed_;
  }
  if (state_ != State::kTruncated) return commit();
  return failed_;
}

Status Content::finish() {
  if (unsent_) return failed_;  // or it has lost its name
  const bool is_nothing_new = state_ == State::kTruncated && entry_.file_length.bytes == 0;
  Status done = failed_;
  if (done && !is_nothing_new) done = commit();
  if (version_) (void)version_->abort();  // the LFSs find out by themselves
  version_.reset();
  file_.reset();
  return done;
}

}  // namespace pif::mount
