// Appending to committed files: rows of granted ranges at every LFS (AppendRows). Who grants them is in
// append_coordinator.h. docs/PROTOCOL.md "Append" has the rules.
//
// A component takes rows in order only: what comes early waits. What is there is synced away from the loop and enters
// the catalogue with its length; all rows that wait at the moment share that.
#pragma once

#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>

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
  // kUnavailable: this LFS is absent. kRetry: it is returning, and has not got all rows of the file in front of `base`.
  [[nodiscard]] Status check_takes_rows(const proto::ComponentShape& shape, const parity::Layout& layout,
                                        std::uint64_t rows, const FileLength& base) const;
  [[nodiscard]] Status check_generation(const Component& component, std::uint64_t generation) const;
  [[nodiscard]] Status check_body(const Component& component, const proto::AppendRows& asked,
                                  std::span<const std::byte> body);
  void advance(Line& line);
  void refuse(Line& line, const std::function<bool(const Waiting&)>& is_refused, const char* why);
  void refuse_late(Line& line);
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

}  // namespace pif::lfs
