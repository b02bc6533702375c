#include "pif/kv/memory_store.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "pif/base/assert.h"

namespace pif::kv {

using Rows = std::map<std::string, std::string, std::less<>>;
// What a write transaction changed: nothing stands for an erased key.
using Changes = std::map<std::string, std::optional<std::string>, std::less<>>;

struct MemoryState {
  std::vector<Rows> tables;
};

namespace {

class MemoryTransaction final : public Transaction {
 public:
  MemoryTransaction(std::shared_ptr<MemoryState> state, bool& open, bool writes)
      : state_(std::move(state)), changes_(state_->tables.size()), open_(open), writes_(writes) {
    PIF_ASSERT(!open_, writes);
    open_ = true;
  }
  ~MemoryTransaction() override { end(); }

  Result<std::optional<std::string_view>> get(Table table, std::string_view key) override {
    PIF_TRY(check(table));
    const Changes& changes = changes_[table];
    if (const auto changed = changes.find(key); changed != changes.end()) {
      if (!changed->second) return std::optional<std::string_view>();
      return std::optional<std::string_view>(*changed->second);
    }
    const Rows& rows = state_->tables[table];
    const auto row = rows.find(key);
    if (row == rows.end()) return std::optional<std::string_view>();
    return std::optional<std::string_view>(row->second);
  }

  Status put(Table table, std::string_view key, std::string_view value) override {
    PIF_TRY(check_write(table, key));
    PIF_ASSERT(scans_ == 0, table);  // LMDB could not do it
    changes_[table].insert_or_assign(std::string(key), std::string(value));
    return {};
  }

  Status erase(Table table, std::string_view key) override {
    PIF_TRY(check_write(table, key));
    PIF_ASSERT(scans_ == 0, table);
    changes_[table].insert_or_assign(std::string(key), std::nullopt);
    return {};
  }

  Status scan(Table table, std::string_view from,
              const std::function<bool(std::string_view, std::string_view)>& visit) override {
    PIF_TRY(check(table));
    ++scans_;
    merge(table, from, visit);
    --scans_;
    return {};
  }

  Result<std::uint64_t> count(Table table) override {
    PIF_TRY(check(table));
    const Rows& rows = state_->tables[table];
    std::uint64_t count = rows.size();
    for (const auto& [key, value] : changes_[table]) {
      const bool was = rows.contains(key);
      if (value && !was) ++count;
      if (!value && was) --count;
    }
    return count;
  }

  Status commit() override {
    if (ended_) return fail(Code::kInternal, "commit of a transaction that is over");
    PIF_ASSERT(scans_ == 0 && changes_.size() == state_->tables.size(), scans_, changes_.size());
    for (std::size_t table = 0; table < changes_.size(); ++table) {
      PIF_ASSERT(writes_ || changes_[table].empty(), table);
      for (auto& [key, value] : changes_[table]) {
        if (value) {
          state_->tables[table].insert_or_assign(key, std::move(*value));
        } else {
          state_->tables[table].erase(key);
        }
      }
    }
    end();
    return {};
  }

 private:
  // Merges the committed rows with the changes; a change hides the row under it.
  void merge(Table table, std::string_view from,
             const std::function<bool(std::string_view, std::string_view)>& visit) const {
    auto row = state_->tables[table].lower_bound(from);
    auto change = changes_[table].lower_bound(from);
    const auto rows_end = state_->tables[table].end();
    const auto changes_end = changes_[table].end();
    while (row != rows_end || change != changes_end) {
      if (change == changes_end || (row != rows_end && row->first < change->first)) {
        if (!visit(row->first, row->second)) return;
        ++row;
        continue;
      }
      if (row != rows_end && row->first == change->first) ++row;
      if (change->second && !visit(change->first, *change->second)) return;
      ++change;
    }
  }

  Status check(Table table) const {
    if (ended_) return fail(Code::kInternal, "use of a transaction that is over");
    if (table >= changes_.size()) return fail(Code::kInternal, fmt::format("there is no table {}", table));
    return {};
  }
  Status check_write(Table table, std::string_view key) const {
    PIF_TRY(check(table));
    if (!writes_) return fail(Code::kInternal, "a write in a read transaction");
    if (key.empty() || key.size() > kKeyBytesMax) {
      return fail(Code::kTooLarge, fmt::format("a key of {} bytes; 1 to {} are possible", key.size(), kKeyBytesMax));
    }
    return {};
  }
  void end() {
    if (std::exchange(ended_, true)) return;
    PIF_ASSERT(open_, writes_);
    open_ = false;
  }

  std::shared_ptr<MemoryState> state_;
  std::vector<Changes> changes_;
  bool& open_;  // the store's
  bool writes_;
  bool ended_ = false;
  unsigned scans_ = 0;  // under way, one within the other
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryState> state) : state_(std::move(state)) { PIF_ASSERT(state_ != nullptr); }

  Result<std::unique_ptr<Transaction>> read() override { return begin(false); }
  Result<std::unique_ptr<Transaction>> write() override { return begin(true); }

 private:
  Result<std::unique_ptr<Transaction>> begin(bool writes) {
    if (open_) return fail(Code::kInternal, "a second transaction while one is open");
    return std::make_unique<MemoryTransaction>(state_, open_, writes);
  }

  std::shared_ptr<MemoryState> state_;
  bool open_ = false;
};

}  // namespace

std::shared_ptr<MemoryState> make_memory_state(unsigned tables) {
  auto state = std::make_shared<MemoryState>();
  state->tables.resize(tables);
  return state;
}

std::shared_ptr<MemoryState> copy_memory_state(const MemoryState& state) {
  return std::make_shared<MemoryState>(state);
}

std::unique_ptr<Store> open_memory(std::shared_ptr<MemoryState> state) {
  return std::make_unique<MemoryStore>(std::move(state));
}

}  // namespace pif::kv
