#include "redo/redo_log.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::uint32_t kLogVersion = 2;  // 1: redo.log of earlier releases (older_log.h)
constexpr std::array<std::byte, redo::kAlign> kZeros{};

}  // namespace

Status RedoLog::open(const Replay& replay) {
  PIF_TRY_VALUE(const bool is_new, open_files());
  if (is_new) return create();
  PIF_TRY_VALUE(const auto head, find_head());
  round_ = head.round;
  return replay_batches(head, replay);
}

// True: the log was never finished being made. Entries are written only behind a synced head.
Result<bool> RedoLog::open_files() {
  bool is_new = true;
  for (std::uint64_t i = 0; i < files_.size(); ++i) {
    PIF_TRY_VALUE(files_[i], storage_.open(path(i), component::OpenMode::kCreate));
    PIF_TRY_VALUE(const auto size, files_[i]->size());
    PIF_TRY_VALUE(const auto head, redo::read_head(*files_[i], path(i), 0, kLogVersion));
    is_new = is_new && !head && size <= kFirstEntry;
  }
  return is_new;
}

Status RedoLog::create() {
  for (const auto& file : files_) PIF_TRY(file->resize(kFirstEntry));
  return confirm(0);
}

Result<redo::StoredHead> RedoLog::find_head() {
  redo::StoredHead best{};
  for (std::uint64_t i = 0; i < files_.size(); ++i) {
    PIF_TRY_VALUE(const auto head, redo::read_head(*files_[i], path(i), 0, kLogVersion));
    if (head && head->round % 2 == i && head->round > best.round) best = *head;
  }
  if (best.round > 0) return best;
  return fail(Code::kCorrupt, fmt::format("neither {} nor {} has a whole head: overwrites that were acknowledged may "
                                          "be missing",
                                          path(0), path(1)));
}

void RedoLog::become(const redo::Reader& reader) {
  PIF_ASSERT(reader.end() >= end_ && reader.number() >= last_number_, reader.end(), reader.number());
  end_ = reader.end();
  last_number_ = reader.number();
  chain_ = reader.chain();
}

Status RedoLog::replay_batches(const redo::StoredHead& head, const Replay& replay) {
  PIF_TRY_VALUE(const auto size, file(round_).size());
  redo::Reader reader(file(round_), path(round_), size, kFirstEntry, head);
  PIF_ASSERT(end_ == kFirstEntry && last_number_ == 0, end_, last_number_);  // opened once
  become(reader);
  std::vector<redo::Reader::Entry> batch;
  LoggedRequests last;
  bool is_last_sure = true;
  for (;;) {
    PIF_TRY_VALUE(auto entry, reader.next());
    if (!entry) break;
    if (entry->type() != LogEntryType::kRequests) {
      batch.push_back(std::move(*entry));
      continue;
    }
    found_.append(std::exchange(last, {}));  // a batch that others follow was synced
    PIF_TRY_VALUE(last, decode_requests(entry->data));
    is_last_sure = true;
    for (const auto& one : batch) {
      PIF_TRY_VALUE(const bool was_needed, replay(one.view(), one.stored.number));
      is_last_sure = is_last_sure && was_needed;
    }
    const bool is_of_rounds_before = batch.empty() && end_ == kFirstEntry;
    if (!is_of_rounds_before) bytes_ += reader.end() - end_;
    batch.clear();
    become(reader);
  }
  if (!is_last_sure) last.forgotten = std::exchange(last.done, {});
  found_.append(last);
  return {};
}

void RedoLog::push(const LogEntry& entry, std::uint64_t number) {
  PIF_ASSERT(!batch_.is_closed, number);
  if (batch_.pieces.empty()) batch_.chain = chain_;
  const auto& header = batch_.headers.emplace_back(redo::make_entry(entry, number, batch_.chain));
  batch_.pieces.push_back({reinterpret_cast<const std::byte*>(&header), sizeof header});
  batch_.pieces.push_back({entry.data.data(), entry.data.size()});
  const auto pad = redo::padding(entry.data.size());
  if (pad > 0) batch_.pieces.push_back({kZeros.data(), pad});
  batch_.bytes += sizeof header + entry.data.size() + pad;
  batch_.chain = header.hash;
  batch_.number = number;
}

void RedoLog::add(const LogEntry& entry, std::uint64_t number) {
  PIF_ASSERT(number > std::max(last_number_, batch_.number), number, last_number_, batch_.number);
  PIF_ASSERT(entry.type != LogEntryType::kRequests, number);
  push(entry, number);
}

void RedoLog::close_batch(std::vector<RequestKey> done) {
  PIF_ASSERT(batch_.number > last_number_, batch_.number, last_number_);
  batch_.requests = encode_requests({{}, std::move(done)});
  push({.data = batch_.requests, .type = LogEntryType::kRequests}, batch_.number);
  batch_.is_closed = true;
}

Status RedoLog::sync(component::File& file) {
  PIF_ASSERT(!failed_);  // a failed sync is never retried
  auto synced = file.sync();
  if (!synced) failed_ = true;
  return synced;
}

Status RedoLog::write_batch() {
  PIF_ASSERT(batch_.is_closed && batch_.bytes % redo::kAlign == 0, batch_.bytes);
  PIF_ASSERT(round_ > 0 && end_ >= kFirstEntry && end_ % redo::kAlign == 0, round_, end_);
  if (failed_)
    return fail(Code::kIo,
                fmt::format("{} failed to sync: overwrites stop until the LFS is started again", path(round_)));
  PIF_TRY(file(round_).write(end_, batch_.pieces));
  if (auto synced = sync(file(round_)); !synced)
    return fail(synced.error().code,
                fmt::format("{}: overwrites stop until the LFS is started again", synced.error().text));
  return {};
}

void RedoLog::end_batch(bool ok) {
  PIF_ASSERT(batch_.number > last_number_, batch_.number, last_number_);
  if (ok) {
    end_ += batch_.bytes;
    bytes_ += batch_.bytes;
    written_ += batch_.bytes;
    PIF_ASSERT(end_ % redo::kAlign == 0, end_);
    chain_ = batch_.chain;
  }
  last_number_ = std::max(last_number_, batch_.number);
  batch_ = Batch();
}

Status RedoLog::write_head(const redo::StoredHead& head) {
  component::File& to = file(head.round);
  PIF_TRY(to.write(0, std::as_bytes(std::span(&head, 1))));
  return sync(to);
}

Status RedoLog::confirm(std::uint64_t number) {
  // A head is written anew even if it stays the same: one that failed to sync is in memory only.
  const bool is_new_round = round_ == 0 || !empty() || number > last_number_;
  PIF_TRY(is_new_round ? checkpoint(number, found_) : write_head(redo::make_head(kLogVersion, round_, last_number_)));
  return storage_.sync_folder(folder_);
}

Status RedoLog::checkpoint(std::uint64_t number, const LoggedRequests& requests) {
  PIF_ASSERT(batch_.pieces.empty(), batch_.bytes);
  const std::uint64_t round = round_ + 1;
  const auto head = redo::make_head(kLogVersion, round, std::max(number, last_number_));
  PIF_ASSERT(round_ == 0 || &this->file(round) != &this->file(round_), round);
  component::File& file = this->file(round);
  std::uint64_t end = kFirstEntry, chain = head.hash;
  if (!requests.done.empty() || !requests.forgotten.empty()) {
    const auto data = encode_requests(requests);
    const auto entry = redo::make_entry({.data = data, .type = LogEntryType::kRequests}, head.number, chain);
    const std::array<component::ConstPiece, 2> pieces = {
        {{reinterpret_cast<const std::byte*>(&entry), sizeof entry}, {data.data(), data.size()}}};
    PIF_ASSERT(data.size() % redo::kAlign == 0, data.size());
    PIF_TRY(file.write(end, pieces));
    PIF_TRY(sync(file));
    end += sizeof entry + data.size();
    chain = entry.hash;
  }
  PIF_TRY(write_head(head));
  round_ = round;
  end_ = end;
  bytes_ = 0;
  last_number_ = head.number;
  chain_ = chain;
  return {};
}

}  // namespace pif::lfs
