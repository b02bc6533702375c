#include "catalogue.h"

#include <fmt/format.h>

#include "convert.h"
#include "pif/base/limits.h"
#include "pif/kv/value.h"
#include "pif/proto/stored.pb.h"

namespace pif::lfs::catalogue {
namespace {

constexpr kv::Table kComponents = 0;
constexpr kv::Table kMeta = 1;
constexpr std::string_view kFormatKey = "format";

Result<proto::ComponentState> parse(FileId file, std::string_view value) {
  const auto what = fmt::format("the catalogue's entry of file {}", name_of(file));
  PIF_TRY_VALUE(const auto payload, kv::open_value(value, what));
  proto::StoredComponent stored;
  if (!stored.ParseFromArray(payload.data(), static_cast<int>(payload.size())) || stored.state().shape().file() != file.value)
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
  return transaction.erase(kComponents, kv::key_u64(file.value));
}

Status each(kv::Store& store, FileId from,
            const std::function<bool(FileId, Result<proto::ComponentState>)>& visit) {
  PIF_TRY_VALUE(auto transaction, store.read());
  return transaction->scan(kComponents, kv::key_u64(from.value), [&](std::string_view key, std::string_view value) {
    if (key.size() != 8)
      return visit(FileId(0), fail(Code::kCorrupt, fmt::format("the catalogue has an entry of no file, with a key of {} bytes",
                                                               key.size())));
    const FileId file(kv::u64_of_key(key));
    return visit(file, parse(file, value));
  });
}

Status check_version(kv::Store& store) {
  {
    PIF_TRY_VALUE(auto transaction, store.read());
    PIF_TRY_VALUE(const auto value, transaction->get(kMeta, kFormatKey));
    if (value) {
      PIF_TRY_VALUE(const auto payload, kv::open_value(*value, "the catalogue's format version"));
      const auto version = payload.size() == 8 ? kv::u64_of_key(payload) : 0;
      if (version > kFormatVersion)
        return fail(Code::kVersion, fmt::format("the catalogue has format {}, this program knows {}: use a newer one",
                                                version, kFormatVersion));
      if (version == 0) return fail(Code::kCorrupt, "the catalogue's format version cannot be read");
      return {};
    }
  }
  PIF_TRY_VALUE(auto transaction, store.write());
  PIF_TRY(transaction->put(kMeta, kFormatKey, kv::seal_value(kv::key_u64(kFormatVersion))));
  return transaction->commit();
}

}  // namespace pif::lfs::catalogue
