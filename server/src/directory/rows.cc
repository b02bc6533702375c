#include "directory/rows.h"

#include <fmt/format.h>

#include "directory/permissions.h"
#include "pif/base/assert.h"
#include "pif/kv/value.h"
#include "pif/server/server.h"

namespace pif::server {
namespace {

template <typename Message>
Result<std::optional<Message>> parse(const Result<std::optional<std::string_view>>& payload, std::string_view what) {
  if (!payload) return fail(payload.error());
  if (!*payload) return std::optional<Message>();
  std::optional<Message> message(std::in_place);
  if (!message->ParseFromArray((*payload)->data(), static_cast<int>((*payload)->size()))) {
    return fail(Code::kCorrupt, fmt::format("the directory's table {} has a value that is no message", what));
  }
  return message;
}

}  // namespace

std::string entry_key(std::uint64_t parent, std::string_view name) {
  std::string key = kv::key_u64(parent);
  key.append(name);
  return key;
}

std::string folder_key(std::uint64_t folder) {
  std::string key = "f";
  key += kv::key_u64(folder);
  return key;
}

Result<kv::Transaction*> Rows::reader() {
  if (writer_) return writer_.get();
  if (!reader_) {
    PIF_TRY_VALUE(reader_, store_.read());
  }
  return reader_.get();
}

Result<kv::Transaction*> Rows::writer() {
  if (broken_) return fail(*broken_);
  if (!writer_) {
    reader_.reset();
    auto writer = store_.write();
    if (!writer) {
      break_with(writer.error());
      return fail(std::move(writer.error()));
    }
    writer_ = std::move(*writer);
  }
  return writer_.get();
}

Result<std::optional<std::string_view>> Rows::get(kv::Table table, std::string_view key) {
  PIF_ASSERT(table < kDirectoryTables.size(), table);
  PIF_TRY_VALUE(kv::Transaction * txn, reader());
  PIF_TRY_VALUE(const auto value, txn->get(table, key));
  if (!value) return std::optional<std::string_view>();
  PIF_TRY_VALUE(const std::string_view payload, kv::open_value(*value, kDirectoryTables[table]));
  return std::optional<std::string_view>(payload);
}

Status Rows::scan(kv::Table table, std::string_view from,
                  const std::function<bool(std::string_view, std::string_view)>& visit) {
  PIF_ASSERT(table < kDirectoryTables.size(), table);
  PIF_TRY_VALUE(kv::Transaction * txn, reader());
  Status good;
  PIF_TRY(txn->scan(table, from, [&](std::string_view key, std::string_view value) {
    auto payload = kv::open_value(value, kDirectoryTables[table]);
    if (!payload) {
      good = fail(std::move(payload.error()));
      return false;
    }
    return visit(key, *payload);
  }));
  return good;
}

Result<std::uint64_t> Rows::count(kv::Table table) {
  PIF_TRY_VALUE(kv::Transaction * txn, reader());
  return txn->count(table);
}

Status Rows::written(Status status) {
  PIF_ASSERT(writer_ != nullptr && reader_ == nullptr && !broken_, writes_);
  ++writes_;
  if (!status) break_with(status.error());
  return status;
}

Status Rows::put(kv::Table table, std::string_view key, const google::protobuf::MessageLite& value) {
  PIF_TRY_VALUE(kv::Transaction * txn, writer());
  const std::size_t bytes = value.ByteSizeLong();
  value_.resize(8 + bytes);
  value.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(value_.data() + 8));
  kv::seal_in_place(value_);
  return written(txn->put(table, key, value_));
}

Status Rows::put_bytes(kv::Table table, std::string_view key, std::string_view payload) {
  PIF_TRY_VALUE(kv::Transaction * txn, writer());
  return written(txn->put(table, key, kv::seal_value(payload)));
}

Status Rows::erase(kv::Table table, std::string_view key) {
  PIF_TRY_VALUE(kv::Transaction * txn, writer());
  return written(txn->erase(table, key));
}

Result<std::optional<proto::StoredEntry>> Rows::entry(std::uint64_t parent, std::string_view name) {
  return parse<proto::StoredEntry>(get(kEntries, entry_key(parent, name)), "entries");
}
Status Rows::put_entry(std::uint64_t parent, std::string_view name, const proto::StoredEntry& entry) {
  PIF_TRY(widen_for(entry));
  return put(kEntries, entry_key(parent, name), entry);
}
Status Rows::widen_for(const proto::StoredEntry& entry) {
  if (is_wide_ || (entry.type() != proto::OTHER && entry.attributes().mode() <= kNarrowModeMask)) return {};
  is_wide_ = true;
  on_abort([this] { is_wide_ = false; });
  return put_bytes(kMeta, kVersionKey, kv::key_u32(kWideFormat));
}
Status Rows::erase_entry(std::uint64_t parent, std::string_view name) {
  return erase(kEntries, entry_key(parent, name));
}

Result<std::optional<proto::StoredFile>> Rows::file(std::uint64_t id) {
  return parse<proto::StoredFile>(get(kFiles, kv::key_u64(id)), "files");
}
Status Rows::put_file(std::uint64_t id, const proto::StoredFile& file) {
  PIF_TRY(widen_for(file.entry()));
  return put(kFiles, kv::key_u64(id), file);
}
Status Rows::erase_file(std::uint64_t id) { return erase(kFiles, kv::key_u64(id)); }

Result<std::optional<proto::StoredFile>> Rows::folder(std::uint64_t id) {
  return parse<proto::StoredFile>(get(kMeta, folder_key(id)), "meta");
}
Status Rows::put_folder(std::uint64_t id, std::uint64_t parent, std::string_view name) {
  proto::StoredFile where;
  where.set_parent(parent);
  where.set_name(std::string(name));
  return put(kMeta, folder_key(id), where);
}
Status Rows::erase_folder(std::uint64_t id) { return erase(kMeta, folder_key(id)); }

void Rows::break_with(Error error) {
  if (!broken_) broken_ = std::move(error);
}

Status Rows::commit() {
  reader_.reset();
  if (writer_ && !broken_) {
    if (auto committed = writer_->commit(); !committed) break_with(std::move(committed.error()));
  }
  writer_.reset();
  writes_ = 0;
  const auto done = std::exchange(on_commit_, {});
  const auto back = std::exchange(on_abort_, {});
  if (!broken_) {
    for (const auto& action : done) action();
    PIF_ASSERT(on_commit_.empty() && on_abort_.empty() && !writer_, on_commit_.size(), on_abort_.size());
    return {};
  }
  for (auto action = back.rbegin(); action != back.rend(); ++action) (*action)();
  PIF_ASSERT(on_commit_.empty() && on_abort_.empty() && !writer_, on_commit_.size(), on_abort_.size());
  Error error = std::move(*broken_);
  broken_.reset();
  return fail(std::move(error));
}

}  // namespace pif::server
