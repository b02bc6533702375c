// An LMDB environment, opened safely: what is truncated is found here, not by a SIGBUS later.
#pragma once

#include <lmdb.h>

#include <memory>
#include <string>
#include <vector>

#include "pif/kv/lmdb_store.h"

namespace pif::kv {

struct EnvCloser {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
using Env = std::unique_ptr<MDB_env, EnvCloser>;

struct TxnAborter {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
using Txn = std::unique_ptr<MDB_txn, TxnAborter>;

struct OpenEnv {
  Env env;
  std::vector<MDB_dbi> tables;
};

// LMDB's return code as an error that names the store.
tl::unexpected<Error> fail_lmdb(int rc, std::string_view what, const std::string& path);

[[nodiscard]] Result<OpenEnv> open_env(const std::string& path, const std::vector<std::string>& tables,
                                       const LmdbGrowth& growth);
// Makes room for one write transaction. No transaction may be open.
[[nodiscard]] Status grow_env(MDB_env* env, const LmdbGrowth& growth, const std::string& path);

}  // namespace pif::kv
