// The key-value seam: ordered tables of byte strings under serialisable transactions. Behind it LMDB (lmdb_store.h) or
// memory (memory_store.h). One process opens an environment once. Used by one thread.
//
// A view that get() or scan() hands out is valid until the next put or erase in the same transaction, or its end.
// No transaction may be open across a wait, and a store has at most one open at any time, read or write: asking for a
// second one is kInternal. A store outlives its transactions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "pif/base/result.h"

namespace pif::kv {

// Index into the list of table names given at open.
using Table = unsigned;

class Transaction {
 public:
  virtual ~Transaction() = default;  // without commit(): nothing happened
  // Errors of all calls: kIo, kNoSpace, kCorrupt and the like, of the store, which the text names; kInternal for a
  // table that there is not, for a write in a read transaction, and after commit().
  //
  // The value as this transaction has it, its own puts included; nothing if the key is not there.
  virtual Result<std::optional<std::string_view>> get(Table table, std::string_view key) = 0;
  // Replaces what the key had. key: 1 to kKeyBytesMax bytes.
  virtual Status put(Table table, std::string_view key, std::string_view value) = 0;
  virtual Status erase(Table table, std::string_view key) = 0;  // a missing key is no error
  // Calls visit(key, value) for keys >= from in byte order until it returns false. visit must not write.
  virtual Status scan(Table table, std::string_view from,
                      const std::function<bool(std::string_view key, std::string_view value)>& visit) = 0;
  virtual Result<std::uint64_t> count(Table table) = 0;  // rows of the table
  // Write transactions: durable when it returns without error. The transaction is over either way.
  virtual Status commit() = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  // The committed state as of now. The store outlives it.
  virtual Result<std::unique_ptr<Transaction>> read() = 0;
  // One at a time. Grows the store first if it is more than half full, so that a transaction of at most
  // kTransactionBytesMax of puts never finds it full.
  virtual Result<std::unique_ptr<Transaction>> write() = 0;
};

inline constexpr std::size_t kTransactionBytesMax = 16u << 20;
inline constexpr std::size_t kKeyBytesMax = 511;

}  // namespace pif::kv
