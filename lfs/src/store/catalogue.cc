#include "store/catalogue.h"

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/kv/value.h"
#include "store/convert.h"

namespace pif::lfs::catalogue {
namespace {

constexpr kv::Table kComponents = 0;
constexpr kv::Table kMeta = 1;
constexpr kv::Table kQuarantine = 2;
constexpr kv::Table kTop = 3;  // the one without a name
constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kNumbersKey = "numbers";
constexpr std::string_view kViewKey = "view";
constexpr std::string_view kScrubKey = "scrub";
constexpr std::string_view kLackingKey = "lacking";

Result<proto::ComponentState> parse(FileId file, std::string_view value) {
  const auto what = fmt::format("the catalogue's entry of file {}", name_of(file));
  PIF_TRY_VALUE(const auto payload, kv::open_value(value, what));
  proto::StoredComponent stored;
  if (!stored.ParseFromArray(payload.data(), static_cast<int>(payload.size())) ||
      stored.state().shape().file() != file.value)
    return fail(Code::kCorrupt, what + " cannot be read");
  return std::move(*stored.mutable_state());
}

}  // namespace

Result<std::optional<proto::ComponentState>> get(kv::Transaction& transaction, FileId file) {
  PIF_TRY_VALUE(const auto value, transaction.get(kComponents, kv::key_u64(file.value)));
  if (!value) return std::nullopt;
  PIF_TRY_VALUE(auto state, parse(file, *value));
  return std::optional(std::move(state));
}

Result<std::optional<proto::ComponentState>> get(kv::Store& store, FileId file) {
  PIF_TRY_VALUE(auto transaction, store.read());
  return get(*transaction, file);
}

Status put(kv::Transaction& transaction, const proto::ComponentState& state) {
  proto::StoredComponent stored;
  *stored.mutable_state() = state;
  return transaction.put(kComponents, kv::key_u64(state.shape().file()), kv::seal_value(stored.SerializeAsString()));
}

Status erase(kv::Transaction& transaction, FileId file) {
  PIF_ASSERT(file.value != 0);
  return transaction.erase(kComponents, kv::key_u64(file.value));
}

Status each(kv::Store& store, FileId from, const std::function<bool(FileId, Result<proto::ComponentState>)>& visit) {
  PIF_TRY_VALUE(auto transaction, store.read());
  return transaction->scan(kComponents, kv::key_u64(from.value), [&](std::string_view key, std::string_view value) {
    if (key.size() != 8)
      return visit(FileId(0),
                   fail(Code::kCorrupt,
                        fmt::format("the catalogue has an entry of no file, with a key of {} bytes", key.size())));
    const FileId file(kv::u64_of_key(key));
    return visit(file, parse(file, value));
  });
}

Status quarantine(kv::Transaction& transaction, const proto::ComponentState& state, std::int64_t since) {
  proto::StoredQuarantine stored;
  *stored.mutable_state() = state;
  stored.set_since(since);
  const FileId file(state.shape().file());
  PIF_ASSERT(file.value != 0);
  PIF_TRY(transaction.put(kQuarantine, kv::key_u64(file.value), kv::seal_value(stored.SerializeAsString())));
  return erase(transaction, file);
}

Status end_quarantine(kv::Transaction& transaction, FileId file) {
  return transaction.erase(kQuarantine, kv::key_u64(file.value));
}

namespace {

Result<proto::StoredQuarantine> parse_quarantine(std::uint64_t file, std::string_view value) {
  const auto what = fmt::format("the catalogue's entry of file {} in quarantine", file);
  PIF_TRY_VALUE(const auto payload, kv::open_value(value, what));
  proto::StoredQuarantine stored;
  if (stored.ParseFromArray(payload.data(), static_cast<int>(payload.size())) && stored.state().shape().file() == file)
    return stored;
  return fail(Code::kCorrupt, what + " cannot be read");
}

}  // namespace

Result<std::optional<proto::StoredQuarantine>> quarantined(kv::Store& store, FileId file) {
  PIF_TRY_VALUE(auto transaction, store.read());
  PIF_TRY_VALUE(const auto value, transaction->get(kQuarantine, kv::key_u64(file.value)));
  if (!value) return std::nullopt;
  PIF_TRY_VALUE(auto stored, parse_quarantine(file.value, *value));
  return std::optional(std::move(stored));
}

Status each_quarantined(kv::Store& store, FileId from,
                        const std::function<bool(FileId, const proto::StoredQuarantine&)>& visit) {
  Status good;
  PIF_TRY_VALUE(auto transaction, store.read());
  PIF_TRY(transaction->scan(kQuarantine, kv::key_u64(from.value), [&](std::string_view key, std::string_view value) {
    auto stored = key.size() == 8
                      ? parse_quarantine(kv::u64_of_key(key), value)
                      : Result<proto::StoredQuarantine>(fail(Code::kCorrupt, "the quarantine has an entry of no file"));
    if (stored) return visit(FileId(kv::u64_of_key(key)), *stored);
    good = fail(std::move(stored.error()));
    return false;
  }));
  return good;
}

Result<proto::StoredNumbers> numbers(kv::Store& store) {
  PIF_TRY_VALUE(auto transaction, store.read());
  PIF_TRY_VALUE(auto value, transaction->get(kTop, kNumbersKey));
  if (!value) {  // where the first programs of format 2 kept it
    PIF_TRY_VALUE(value, transaction->get(kMeta, kNumbersKey));
  }
  if (!value)
    return fail(Code::kCorrupt, "the catalogue does not say whose it is: it is not the one that belongs to this root");
  PIF_TRY_VALUE(const auto payload, kv::open_value(*value, "the catalogue's numbers"));
  proto::StoredNumbers stored;
  if (stored.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return stored;
  return fail(Code::kCorrupt, "the catalogue's numbers cannot be read");
}

Status put_numbers(kv::Transaction& transaction, const proto::StoredNumbers& numbers) {
  return transaction.put(kTop, kNumbersKey, kv::seal_value(numbers.SerializeAsString()));
}

Result<std::string> view(kv::Store& store) {
  PIF_TRY_VALUE(auto transaction, store.read());
  PIF_TRY_VALUE(const auto value, transaction->get(kMeta, kViewKey));
  if (!value) return std::string();
  PIF_TRY_VALUE(const auto payload, kv::open_value(*value, "the catalogue's view"));
  return std::string(payload);
}

Status put_view(kv::Transaction& transaction, std::string_view packed) {
  return transaction.put(kMeta, kViewKey, kv::seal_value(packed));
}

Result<ScrubRecord> scrub(kv::Store& store) {
  PIF_TRY_VALUE(auto transaction, store.read());
  PIF_TRY_VALUE(const auto value, transaction->get(kMeta, kScrubKey));
  if (!value) return ScrubRecord();
  PIF_TRY_VALUE(const auto payload, kv::open_value(*value, "the catalogue's note of the last scrub"));
  if (payload.size() != 16) return fail(Code::kCorrupt, "the catalogue's note of the last scrub cannot be read");
  return ScrubRecord{static_cast<std::int64_t>(kv::u64_of_key(payload.substr(0, 8))),
                     kv::u64_of_key(payload.substr(8))};
}

Status put_scrub(kv::Transaction& transaction, const ScrubRecord& record) {
  PIF_ASSERT(record.ended > 0, record.ended);
  const std::string payload = kv::key_u64(static_cast<std::uint64_t>(record.ended)) + kv::key_u64(record.unrepaired);
  return transaction.put(kMeta, kScrubKey, kv::seal_value(payload));
}

Result<proto::StoredLacking> lacking(kv::Store& store) {
  PIF_TRY_VALUE(auto transaction, store.read());
  PIF_TRY_VALUE(const auto value, transaction->get(kMeta, kLackingKey));
  if (!value) return proto::StoredLacking();
  PIF_TRY_VALUE(const auto payload, kv::open_value(*value, "the catalogue's list of files that are lacking"));
  proto::StoredLacking stored;
  if (stored.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return stored;
  return fail(Code::kCorrupt, "the catalogue's list of files that are lacking cannot be read");
}

Status put_lacking(kv::Transaction& transaction, const proto::StoredLacking& lacking) {
  return transaction.put(kMeta, kLackingKey, kv::seal_value(lacking.SerializeAsString()));
}

Result<std::uint64_t> version(kv::Store& store) {
  PIF_TRY_VALUE(auto transaction, store.read());
  PIF_TRY_VALUE(const auto value, transaction->get(kMeta, kFormatKey));
  if (!value) return 0;
  PIF_TRY_VALUE(const auto payload, kv::open_value(*value, "the catalogue's format version"));
  const auto version = payload.size() == 8 ? kv::u64_of_key(payload) : 0;
  if (version == 0) return fail(Code::kCorrupt, "the catalogue's format version cannot be read");
  return version;
}

Status check_version(kv::Store& store) {
  PIF_TRY_VALUE(const auto found, version(store));
  if (found > kFormatBefore && found <= kRootFormat) return {};
  if (found == 0) return fail(Code::kCorrupt, "the catalogue is empty, though the root is not new");
  return fail(Code::kVersion,
              fmt::format("the catalogue has format {}, this program knows {}: {}", found, kRootFormat,
                          found == kFormatBefore ? "run `pif up`, which takes it over" : "use a newer one"));
}

Status begin(kv::Store& store, const std::string& uuid) {
  proto::StoredNumbers numbers;
  numbers.set_uuid(uuid);
  PIF_TRY_VALUE(auto transaction, store.write());
  PIF_TRY(put_numbers(*transaction, numbers));
  PIF_TRY(transaction->put(kMeta, kFormatKey, kv::seal_value(kv::key_u64(kRootFormat))));
  return transaction->commit();
}

Status raise(kv::Store& store) {
  PIF_TRY_VALUE(auto transaction, store.write());
  PIF_TRY(transaction->put(kMeta, kFormatKey, kv::seal_value(kv::key_u64(kRootFormat))));
  return transaction->commit();
}

}  // namespace pif::lfs::catalogue
