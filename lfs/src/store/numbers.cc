#include "store/numbers.h"

#include "pif/base/assert.h"
#include "store/catalogue.h"

namespace pif::lfs {

Status Numbers::load(kv::Store& catalogue, std::uint64_t floor) {
  PIF_TRY_VALUE(record_, catalogue::numbers(catalogue));
  last_ = durable_ = std::max(record_.number(), floor);
  offered_ = record_.incarnation();
  server_moment_ = record_.kept();
  taken_back_ = record_.taken_back();
  return {};
}

Result<proto::StoredNumbers> Numbers::put(kv::Transaction& transaction) {
  proto::StoredNumbers record;
  record.set_uuid(record_.uuid());
  record.set_incarnation(offered_);
  record.set_number(take());
  *record.mutable_kept() = server_moment_;
  record.set_taken_back(taken_back_);
  PIF_TRY(catalogue::put_numbers(transaction, record));
  return record;
}

void Numbers::committed(const proto::StoredNumbers& record) {
  PIF_ASSERT(record.number() <= last_ && record.number() > record_.number(), record.number(), last_);
  PIF_ASSERT(record.uuid() == record_.uuid());
  record_ = record;
  became_durable(record.number());
}

}  // namespace pif::lfs
