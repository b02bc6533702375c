// Appending to committed files: rows of granted ranges at every LFS (AppendRows). append_coordinator.h grants them.
// docs/PROTOCOL.md "Append" has the rules.
//
// A component takes rows in order only: what comes early waits for its turn. Each request writes its own rows. Those
// that write in one turn of the loop are a round: the first of them syncs the files away from the loop, and enters the
// new length in the catalogue, for all of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "context/lfs_context.h"

namespace pif::lfs {

class Appending {
 public:
  explicit Appending(LfsContext& context);

  [[nodiscard]] Status append_rows(const Request& request, const proto::AppendRows& asked);

 private:
  // The rows of one request.
  struct Rows {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint64_t generation = 0;
    std::uint32_t within = 0;
    FileLength base;
    std::span<const std::byte> body;
  };
  // Rows that become durable together.
  struct Round {
    explicit Round(daemon::Fibers& fibers) : ended(fibers) {}
    bool takes_more() const;

    bool is_closed = false;  // it is being synced
    std::uint64_t bytes = 0;
    Status written;
    std::optional<Status> result;
    ComponentLock::Held held;  // the component's
    daemon::Event ended;
  };
  struct Line {  // of one component
    ComponentPtr component;
    std::size_t requests = 0;
    std::shared_ptr<Round> round;                                // under way
    std::multimap<std::uint64_t, daemon::Fibers::WaitId> early;  // by where their rows begin
    bool is_locking = false;  // one request waits for the component's lock; the others join its round
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
  [[nodiscard]] Result<Line*> line_of(const ComponentPtr& component);

  // kNow: the rows can be written, in the round that is under way, or in a new one with `held`; kThere: they were.
  [[nodiscard]] Result<daemon::Fresh<Place>> wait_for_turn(const Request& request, Line& line, const Rows& rows,
                                                           ComponentLock::Held& held);
  // One try. kEarly: until something changes nothing can be said.
  [[nodiscard]] Result<Place> look(Line& line, const Rows& rows, Time deadline, ComponentLock::Held& held);
  [[nodiscard]] Status lock(Line& line, Time deadline, ComponentLock::Held& held);
  [[nodiscard]] Status check_room(std::size_t waiting_bytes, const Request& request, const Line& line) const;
  // False: until then nothing has changed.
  bool wait_for_change(Line& line, const Rows& rows, Time until);
  // The component drops what is behind `base`. It may wait.
  [[nodiscard]] Status begin_generation(const ComponentPtr& component, const Rows& rows);
  [[nodiscard]] Result<component::Tail> base_tail(Component& component, const FileLength& base);
  // The component has a writer.
  static Place place_of(const Component& component, const Rows& rows);

  // Returns when they are durable.
  [[nodiscard]] Status write(Line& line, const Rows& rows, ComponentLock::Held held);
  [[nodiscard]] Status write_one(Component& component, const Rows& rows);
  [[nodiscard]] Status write_fixed(Component& component, const Rows& rows);
  [[nodiscard]] Status fill_row(Component& component, const Rows& rows);
  [[nodiscard]] Status write_variable(Component& component, const Rows& rows);
  static void wait_for_end(const std::shared_ptr<Round>& round);
  [[nodiscard]] Status make_durable(const ComponentPtr& component, Round& round);

  LfsContext& context_;
  std::unordered_map<std::uint32_t, std::size_t> bytes_of_user_;  // that wait for their turn
  std::unordered_map<std::uint64_t, Line> lines_;                 // by file; only those with requests
};

}  // namespace pif::lfs
