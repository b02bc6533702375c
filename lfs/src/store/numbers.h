// The identity of a root, and how far it has come (docs/FORMAT.md "Who is how old"). One counter numbers every durable
// change: commits of the catalogue and entries of the redo log.
//
// Rules: (1) a number is durable before anybody hears of it. (2) It is above all before it, over restarts too. (3) The
// server's moment is stored with the next commit; no commit is made for it alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "pif/base/assert.h"
#include "pif/kv/store.h"
#include "pif/proto/stored.pb.h"
#include "pif/wire/values.h"

namespace pif::lfs {

class Numbers {
 public:
  // At a start. `floor`: the highest number that components or the log bear. kCorrupt: the catalogue says nothing of
  // it.
  [[nodiscard]] Status load(kv::Store& catalogue, std::uint64_t floor);

  // For the next change.
  std::uint64_t take() { return ++last_; }
  void became_durable(std::uint64_t number) {
    PIF_ASSERT(number <= last_, number, last_);
    durable_ = std::max(durable_, number);
  }
  // Puts the record of the transaction that is about to be committed; committed(it), if it is.
  [[nodiscard]] Result<proto::StoredNumbers> put(kv::Transaction& transaction);
  void committed(const proto::StoredNumbers& record);

  const std::string& uuid() const { return record_.uuid(); }
  std::uint64_t incarnation() const { return record_.incarnation(); }
  std::uint64_t durable() const { return durable_; }
  // The newest that is known of the server, in memory or on disk.
  const proto::Moment& server_moment() const { return server_moment_; }
  std::uint64_t taken_back() const { return record_.taken_back(); }
  std::uint64_t run() const { return server_moment_.run(); }

  // The server has admitted this LFS: with the next commit it is that incarnation.
  // taken_back: by a person's word.
  void offer(std::uint64_t incarnation, bool taken_back) {
    offered_ = incarnation;
    if (taken_back) taken_back_ = incarnation;
  }
  // All later numbers are of this era, or a later one: above all that was done for this LFS while it was lost.
  void begin_era(std::uint32_t era) { last_ = std::max(last_, std::uint64_t{era} << wire::kEraShift); }
  // A server that this LFS goes along with has come so far.
  void note_moment(const proto::Moment& moment) { server_moment_ = moment; }
  // Whether a word of that moment comes from the server that was heard last, and no older one of its run.
  bool is_of_server(const proto::Moment& moment) const {
    return moment.run() == server_moment_.run() && moment.index() >= server_moment_.index();
  }

 private:
  proto::StoredNumbers record_;  // durable
  proto::Moment server_moment_;
  std::uint64_t offered_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t durable_ = 0;
  std::uint64_t taken_back_ = 0;
};

}  // namespace pif::lfs
