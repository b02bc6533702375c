// Appending to committed files: rows of granted ranges at every LFS (AppendRows), and at LFS 0 of a file its sequencer
// (Reserve, AppendDone). docs/PROTOCOL.md "Append" has the rules.
//
// A component takes rows in order only: what comes early waits. What is there is synced away from the loop and enters
// the catalogue with its length; all rows that wait at the moment share that.
#pragma once

#include <deque>
#include <unordered_map>
#include <utility>

#include "append/noting.h"
#include "append/sequencer.h"
#include "context/lfs_context.h"
#include "pif/base/assert.h"

namespace pif::lfs {

class Appending {
 public:
  explicit Appending(LfsContext& context);

  void append_rows(const Request& request, const proto::AppendRows& asked);
  // Writes what has become possible. Once per turn.
  void advance();
  Time next_deadline() const;

 private:
  // Bytes of rows that one user has waiting here, as long as it lives.
  class Charge {
   public:
    Charge(std::size_t& total, std::size_t bytes) : total_(&total), bytes_(bytes) { *total_ += bytes_; }
    Charge(Charge&& other) noexcept : total_(other.total_), bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept {
      std::swap(total_, other.total_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Charge() {
      PIF_ASSERT(*total_ >= bytes_, *total_, bytes_);
      *total_ -= bytes_;
    }

   private:
    std::size_t* total_;
    std::size_t bytes_;
  };
  struct Waiting {
    ReplyToken token = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint64_t generation = 0;
    std::uint32_t within = 0;
    FileLength base;
    net::Buffer body;
    Time deadline;
    Charge charge;
    QueuedChange queued;
  };
  struct Line {  // of one component
    ComponentPtr component;
    std::deque<Waiting> waiting;
    bool busy = false;
  };
  enum class Place : std::uint8_t { kNow, kEarly, kThere, kWrong };

  [[nodiscard]] Status check(const Request& request);
  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request);
  [[nodiscard]] Status check_body(const Component& component, const proto::AppendRows& asked,
                                  std::span<const std::byte> body);
  void advance(Line& line);
  void refuse_old(Line& line);
  [[nodiscard]] bool begin_generation(Line& line);
  [[nodiscard]] Result<component::Tail> base_tail(Component& component, const FileLength& base);
  [[nodiscard]] Place place_of(const Component& component, const Waiting& waiting) const;
  void write_ready(Line& line);
  [[nodiscard]] Status write_one(Component& component, const Waiting& waiting);
  [[nodiscard]] Status write_fixed(Component& component, const Waiting& waiting);
  [[nodiscard]] Status fill_row(Component& component, const Waiting& waiting);
  [[nodiscard]] Status write_variable(Component& component, const Waiting& waiting);
  void make_durable(Line& line, std::vector<ReplyToken> tokens);
  void publish_rows(Line& line, const component::Tail& tail, std::uint64_t applied, std::vector<ReplyToken> tokens);
  void answer_all(const std::vector<ReplyToken>& tokens, const Status& status);

  LfsContext& context_;
  std::unordered_map<std::uint32_t, std::size_t> bytes_of_user_;  // that wait
  std::unordered_map<std::uint64_t, Line> lines_;  // by file; only those with something waiting or under way
};

class AppendCoordinator {
 public:
  // peers: of files with parity the deputy is told (noting.h). Both outlive it.
  AppendCoordinator(LfsContext& context, Peers& peers);

  void reserve(const Request& request, const proto::Reserve& asked);
  void append_done(const Request& request, const proto::AppendDone& asked);
  void append_cancel(const Request& request, const proto::AppendCancel& asked);
  // Who had these connections is gone, and so is what was reserved over them.
  void drop_peer(net::PeerId peer);
  // Publishes what is done, cancels what has lapsed. Once per turn.
  void advance();
  Time next_deadline() const;

 private:
  struct Finished {  // an AppendDone
    ReplyToken token = 0;
    std::uint64_t ticket = 0;
    std::uint64_t generation = 0;
  };
  struct File {
    ComponentPtr component;
    Sequencer sequencer;
    std::unordered_map<std::uint64_t, std::vector<ReplyToken>> waiting;  // by ticket: AppendDone to answer
    std::uint64_t first_generation = 0;
    std::uint64_t durable_generation = 0;
    bool publishing = false;
    Time used;
    bool is_settled = false;  // goes by the deputy's length, too; without parity from the beginning
    bool is_settling = false;
    Time note_again{};                // not before: the deputy did not answer
    std::string trouble;              // why it is not settled yet
    std::vector<Finished> unsettled;  // wait for that
  };
  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request);
  [[nodiscard]] File& file_of(const ComponentPtr& component);
  std::uint64_t first_generation(const proto::ComponentState& state) const;
  [[nodiscard]] static Status done_before(const proto::ComponentState& state, const Finished& finished);
  [[nodiscard]] Status check_ready(File& file);
  void finish(File& file, const Finished& finished);
  void settle(File& file);
  void settle_with(File& file, const Sequencer::Publication& noted);
  void settled(File& file);
  void grant(std::uint64_t id, const Sequencer::Grant& grant, ReplyToken token);
  void publish(File& file);
  void commit(File& file, const Sequencer::Publication& publication);
  void cancel(File& file, const std::vector<std::uint64_t>& tickets, const Error& why);
  void drop(std::uint64_t id, const Error& why);

  LfsContext& context_;
  Noting noting_;
  std::unordered_map<std::uint64_t, std::unique_ptr<File>> files_;
};

}  // namespace pif::lfs
