#include "context/input_locks.h"

#include <utility>

#include "pif/base/assert.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr std::size_t kKeyBytes = 16;

std::string key_of(std::uint64_t file, std::uint64_t session) { return kv::key_u64(file) + kv::key_u64(session); }

}  // namespace

Status InputLocks::load(Sessions& sessions, Time now, std::int64_t wall) {
  bool good = true;
  PIF_TRY(rows_.scan(kInputLocks, {}, [&](std::string_view key, std::string_view payload) {
    proto::StoredInputLock row;
    good = key.size() == kKeyBytes && row.ParseFromArray(payload.data(), static_cast<int>(payload.size())) &&
           row.count() > 0;
    if (!good) return false;
    Holder holder{.session = kv::u64_of_key(key.substr(8)), .rights = row.rights(), .hold = true, .count = row.count()};
    holder.expiry = wall + kLeaseSeconds;
    Session& session = sessions.absent(holder.session, row.uid(), now);
    if (session.program.empty()) session.program = row.program();
    opens_.restore(kv::u64_of_key(key), holder);
    return true;
  }));
  if (!good) return fail(Code::kCorrupt, "the directory's table input-locks has a row that cannot be read");
  return {};
}

Status InputLocks::store(std::uint64_t file, const Session& session, const Holder& holder) {
  PIF_ASSERT(holder.hold && holder.count > 0, file, holder.count);
  PIF_ASSERT(holder.session == session.id, file, holder.session, session.id);
  proto::StoredInputLock row;
  row.set_uid(session.who.uid);
  row.set_program(session.program);
  row.set_rights(holder.rights);
  row.set_count(holder.count);
  return rows_.put(kInputLocks, key_of(file, session.id), row);
}

Status InputLocks::erase_ended() {
  const auto ended = std::exchange(opens_.ended_holds(), {});
  rows_.on_abort(
      [this, ended] { opens_.ended_holds().insert(opens_.ended_holds().end(), ended.begin(), ended.end()); });
  for (const auto& [file, session] : ended) {
    const Holder* again = opens_.find(file, session);
    if (again != nullptr && again->hold) continue;  // held once more: its row is of that
    PIF_TRY(rows_.erase(kInputLocks, key_of(file, session)));
  }
  return {};
}

}  // namespace pif::server
