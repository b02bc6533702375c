#include "pif/kv/lmdb_store.h"

#include <utility>

#include "lmdb_env.h"
#include "pif/base/assert.h"

namespace pif::kv {
namespace {

MDB_val to_val(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }
std::string_view to_view(const MDB_val& value) { return {static_cast<const char*>(value.mv_data), value.mv_size}; }

class LmdbTransaction;

class LmdbStore final : public Store {
 public:
  LmdbStore(std::string path, OpenEnv opened, LmdbGrowth growth)
      : path_(std::move(path)), opened_(std::move(opened)), growth_(growth), cursors_(opened_.tables.size()) {}
  ~LmdbStore() override;

  Result<std::unique_ptr<Transaction>> read() override;
  Result<std::unique_ptr<Transaction>> write() override;

 private:
  friend class LmdbTransaction;
  MDB_env* env() { return opened_.env.get(); }

  std::string path_;
  OpenEnv opened_;
  LmdbGrowth growth_;
  // The one read transaction and its cursors, kept between uses: a renewal costs a fraction of a begin.
  MDB_txn* reader_ = nullptr;
  std::vector<MDB_cursor*> cursors_;  // by table
  bool open_ = false;
};

class LmdbTransaction final : public Transaction {
 public:
  LmdbTransaction(LmdbStore& store, MDB_txn* txn, bool writes) : store_(store), txn_(txn), writes_(writes) {
    PIF_ASSERT(txn_ != nullptr && !store_.open_, writes);
    store_.open_ = true;
  }
  ~LmdbTransaction() override { end(); }

  Result<std::optional<std::string_view>> get(Table table, std::string_view key) override {
    PIF_TRY(check(table));
    MDB_val k = to_val(key), value{};
    const int rc = mdb_get(txn_, store_.opened_.tables[table], &k, &value);
    if (rc == MDB_NOTFOUND) return std::optional<std::string_view>();
    if (rc != 0) return fail_lmdb(rc, "cannot read the store", store_.path_);
    return std::optional<std::string_view>(to_view(value));
  }

  Status put(Table table, std::string_view key, std::string_view value) override {
    PIF_TRY(check_write(table));
    PIF_ASSERT(scans_ == 0, table);  // what a scan hands out would move
    MDB_val k = to_val(key), v = to_val(value);
    const int rc = mdb_put(txn_, store_.opened_.tables[table], &k, &v, 0);
    if (rc != 0) return fail_lmdb(rc, "cannot write the store", store_.path_);
    return {};
  }

  Status erase(Table table, std::string_view key) override {
    PIF_TRY(check_write(table));
    PIF_ASSERT(scans_ == 0, table);
    MDB_val k = to_val(key);
    const int rc = mdb_del(txn_, store_.opened_.tables[table], &k, nullptr);
    if (rc != 0 && rc != MDB_NOTFOUND) return fail_lmdb(rc, "cannot write the store", store_.path_);
    return {};
  }

  Status scan(Table table, std::string_view from,
              const std::function<bool(std::string_view, std::string_view)>& visit) override {
    PIF_TRY(check(table));
    PIF_TRY_VALUE(MDB_cursor * cursor, take_cursor(table));
    ++scans_;
    MDB_val key = to_val(from), value{};
    int rc = mdb_cursor_get(cursor, &key, &value, from.empty() ? MDB_FIRST : MDB_SET_RANGE);
    while (rc == 0 && visit(to_view(key), to_view(value))) rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    --scans_;
    give_back(table, cursor);
    if (rc != 0 && rc != MDB_NOTFOUND) return fail_lmdb(rc, "cannot read the store", store_.path_);
    return {};
  }

  Result<std::uint64_t> count(Table table) override {
    PIF_TRY(check(table));
    MDB_stat stat{};
    if (const int rc = mdb_stat(txn_, store_.opened_.tables[table], &stat)) {
      return fail_lmdb(rc, "cannot read the store", store_.path_);
    }
    return std::uint64_t{stat.ms_entries};
  }

  Status commit() override {
    if (txn_ == nullptr) return fail(Code::kInternal, "commit of a transaction that is over");
    PIF_ASSERT(store_.open_ && scans_ == 0, scans_);
    if (!writes_) {
      end();
      return {};
    }
    const int rc = mdb_txn_commit(std::exchange(txn_, nullptr));
    store_.open_ = false;
    if (rc != 0) return fail_lmdb(rc, "cannot commit to the store", store_.path_);
    return {};
  }

 private:
  Status check(Table table) const {
    if (txn_ == nullptr) return fail(Code::kInternal, "use of a transaction that is over");
    if (table >= store_.opened_.tables.size())
      return fail(Code::kInternal, "there is no such table in " + store_.path_);
    return {};
  }
  Status check_write(Table table) const {
    PIF_TRY(check(table));
    if (!writes_) return fail(Code::kInternal, "a write in a read transaction");
    return {};
  }

  // The reader's cursors are kept; a scan within a scan, and a write transaction, make their own.
  Result<MDB_cursor*> take_cursor(Table table) {
    MDB_cursor* cursor = writes_ ? nullptr : std::exchange(store_.cursors_[table], nullptr);
    const int rc = cursor != nullptr ? mdb_cursor_renew(txn_, cursor)
                                     : mdb_cursor_open(txn_, store_.opened_.tables[table], &cursor);
    if (rc != 0) return fail_lmdb(rc, "cannot read the store", store_.path_);
    return cursor;
  }
  void give_back(Table table, MDB_cursor* cursor) {
    PIF_ASSERT(cursor != nullptr && table < store_.cursors_.size(), table, store_.cursors_.size());
    if (writes_ || store_.cursors_[table] != nullptr) {
      mdb_cursor_close(cursor);
    } else {
      store_.cursors_[table] = cursor;
    }
  }

  void end() {
    if (txn_ == nullptr) return;
    PIF_ASSERT(store_.open_, writes_);
    if (writes_) {
      mdb_txn_abort(txn_);
    } else {
      mdb_txn_reset(txn_);
    }
    txn_ = nullptr;
    store_.open_ = false;
  }

  LmdbStore& store_;
  MDB_txn* txn_;
  bool writes_;
  unsigned scans_ = 0;  // under way, one within the other
};

LmdbStore::~LmdbStore() {
  PIF_ASSERT(!open_);  // a transaction would go on with what is closed here
  for (MDB_cursor* cursor : cursors_) {
    if (cursor != nullptr) mdb_cursor_close(cursor);
  }
  if (reader_ != nullptr) mdb_txn_abort(reader_);
}

Result<std::unique_ptr<Transaction>> LmdbStore::read() {
  if (open_) return fail(Code::kInternal, "a second transaction while one is open in " + path_);
  const int rc = reader_ != nullptr ? mdb_txn_renew(reader_) : mdb_txn_begin(env(), nullptr, MDB_RDONLY, &reader_);
  if (rc != 0) return fail_lmdb(rc, "cannot read the store", path_);
  return std::make_unique<LmdbTransaction>(*this, reader_, false);
}

Result<std::unique_ptr<Transaction>> LmdbStore::write() {
  if (open_) return fail(Code::kInternal, "a second transaction while one is open in " + path_);
  PIF_TRY(grow_env(env(), growth_, path_));
  MDB_txn* txn = nullptr;
  if (const int rc = mdb_txn_begin(env(), nullptr, 0, &txn)) return fail_lmdb(rc, "cannot write the store", path_);
  return std::make_unique<LmdbTransaction>(*this, txn, true);
}

}  // namespace

Result<std::unique_ptr<Store>> open_lmdb(const std::string& path, std::vector<std::string> tables, LmdbGrowth growth) {
  PIF_TRY_VALUE(OpenEnv opened, open_env(path, tables, growth));
  return std::unique_ptr<Store>(std::make_unique<LmdbStore>(path, std::move(opened), growth));
}

}  // namespace pif::kv
