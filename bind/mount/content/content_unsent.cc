// Content of files that the file system does not know yet: -o lazy.
#include <algorithm>
#include <utility>

#include "content/content.h"
#include "pif/base/assert.h"

namespace pif::mount {
namespace {

constexpr std::size_t kBatch = 256;               // more gain nothing, and answers would come late
constexpr std::uint64_t kSmallBytes = 64u << 10;  // of a file that goes in messages
constexpr int kAttempts = 3;                      // LFSs come and go while files are sent

}  // namespace

Content::Content(Client& client, Entry entry, std::unique_ptr<Unsent> unsent, std::uint64_t rewrite_max)
    : client_(client),
      rewrite_max_(rewrite_max),
      unsent_(std::move(unsent)),
      state_(State::kUnsent),
      entry_(std::move(entry)) {}

// ---- changes ----

void Content::change_unsent(const AttributeChange& change) {
  PIF_ASSERT(unsent_ != nullptr, state_);
  unsent_->set_attributes(change);
  take_change(change);
}

void Content::close_unsent() {
  if (state_ == State::kUnsent && !is_unlinked_) state_ = State::kWaiting;
}

Status Content::prepare_unsent(std::uint64_t size) {
  PIF_TRY(send_waiting());
  return unsent_ && !unsent_->resize(size) ? send_name() : Status();
}

// ---- the file system gets to know it ----

Status Content::send_waiting() {
  if (state_ != State::kWaiting) return {};
  Content* const all[] = {this};
  send_many(client_, all);
  return failed_;
}

// Its name is there, with an empty file.
Result<File> Content::make_named() {
  PIF_ASSERT(unsent_ != nullptr && !version_, state_);
  if (is_unlinked_) return create_unlinked(0);
  CreateOptions options = unsent_->made().options;
  options.modified_ns.reset();  // what is still to be written sets it
  PIF_TRY_VALUE(Client::CreatedNow created, client_.create_now(unsent_->made().path, options));
  unsent_->become_known(created.entry.inode);
  const std::uint64_t node = std::exchange(created.entry.inode, entry_.inode);
  PIF_ASSERT(node != entry_.inode, node);
  entry_ = std::move(created.entry);
  return std::move(created.file);
}

Status Content::send_name() {
  PIF_TRY(failed_);
  if (state_ != State::kUnsent) return send_waiting();
  auto made = make_named();
  if (!made) {
    failed_ = fail(std::move(made.error()));
    return failed_;
  }
  const auto unsent = std::exchange(unsent_, nullptr);
  PIF_ASSERT(unsent != nullptr && !version_, state_);
  version_ = std::move(*made);
  state_ = unsent->size() > 0 || is_unlinked_ ? State::kWritten : State::kTruncated;
  if (unsent->size() > 0) {
    if (auto written = version_->pwrite(unsent->bytes(), 0); !written) failed_ = fail(std::move(written.error()));
  }
  if (failed_ && unsent->is_time_set() && !is_unlinked_) {
    AttributeChange change;
    change.modified_ns = unsent->made().options.modified_ns;
    PIF_TRY(client_.change_attributes(unsent->made().path, change));
  }
  return failed_;
}

void Content::take_sent(const Status& outcome, const File* file) {
  PIF_ASSERT(state_ == State::kWaiting, state_);
  PIF_ASSERT(unsent_ != nullptr && (file != nullptr || !outcome), state_);
  failed_ = outcome;
  if (!outcome) return;
  entry_.id = file->id();
  entry_.file_length = file->file_length_seen();
  unsent_->become_known(entry_.id);
  unsent_.reset();
  state_ = State::kCommitted;
}

// Those that are to be sent again, for their LFSs have changed meanwhile.
std::vector<Content*> Content::send_once(Client& client, std::span<Content* const> contents) {
  std::vector<Client::NewFile> wanted;
  for (const Content* content : contents) {
    PIF_ASSERT(content->unsent_ != nullptr, content->state_);
    Client::NewFile& file = wanted.emplace_back(content->unsent_->made());
    file.options.is_small = content->unsent_->size() <= kSmallBytes;
  }
  auto created = client.create_many(wanted);
  PIF_ASSERT(created.size() == contents.size(), created.size(), contents.size());
  std::vector<File*> files;
  std::vector<Content*> written, again;
  const auto note = [&](Content& content, const Status& outcome, const File* file) {
    content.take_sent(outcome, file);
    if (!outcome && outcome.error().code == Code::kOldView) again.push_back(&content);
  };
  for (std::size_t i = 0; i < contents.size(); ++i) {
    Status filled;
    if (!created[i]) filled = fail(created[i].error());
    if (filled && contents[i]->unsent_->size() > 0) filled = created[i]->write(contents[i]->unsent_->bytes());
    if (!filled) {
      note(*contents[i], filled, nullptr);
      continue;
    }
    files.push_back(&*created[i]);
    written.push_back(contents[i]);
  }
  const auto outcome = client.commit_many(files);
  PIF_ASSERT(outcome.size() == files.size(), outcome.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) note(*written[i], outcome[i], files[i]);
  return again;
}

void Content::send_many(Client& client, std::span<Content* const> contents) {
  std::vector<Content*> left;
  for (Content* content : contents)
    if (content->state_ == State::kWaiting && content->failed_) left.push_back(content);
  for (std::size_t at = 0; at < left.size(); at += kBatch) {
    auto batch = std::vector(left.begin() + static_cast<std::ptrdiff_t>(at),
                             left.begin() + static_cast<std::ptrdiff_t>(std::min(at + kBatch, left.size())));
    for (int attempt = 0; attempt < kAttempts && !batch.empty(); ++attempt) batch = send_once(client, batch);
  }
}

}  // namespace pif::mount
