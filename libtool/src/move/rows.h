// The two ends of an exchange, without any messages: RowSender turns a component into batches as far as it has credit,
// RowReceiver turns batches into a component. Both pure apart from reading and writing their component.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "pif/net/buffer.h"
#include "pif/tool/exchange.h"
#include "pif/tool/narrow.h"
#include "pif/tool/numbered.h"
#include "pif/tool/shared_memory.h"

namespace pif::tool {

// The values that both ends must agree on.
struct WindowSize {
  std::uint64_t piece = 0;  // rows that are written at once (fixed records)
  std::uint64_t rows = 0;   // of the window: a multiple of piece
  std::uint64_t share = 0;  // bytes a source may have under way to one destination (variable records)

  static WindowSize of(const Format& format, std::size_t window_bytes, std::uint32_t sources);
};

class RowSender {
 public:
  using Emit = std::function<Status(RowMessage)>;

  // input outlives the sender.
  RowSender(Input& input, const parity::Layout& to, const WindowSize& window);

  // Sends what there is credit for, from the present block or the next; whether anything was sent.
  [[nodiscard]] Result<bool> step(const Emit& emit);
  // Before anything is sent: how far it may go there, and the window that takes rows of fixed length; empty: they go by
  // message. Both outlive the sender.
  void open(LfsIndex to, const Credit& credit, std::span<std::byte> window);
  // Whether the present block still has rows without credit.
  bool is_waiting() const { return !strips_.empty() || next_ >= input_.rows(); }
  bool has_sent_all() const { return next_ >= input_.rows() && strips_.empty(); }

 private:
  struct Destination {
    const Credit* credit = nullptr;
    std::span<std::byte> window;
  };
  struct Pending {
    RowMap map;
    std::uint64_t sent = 0;
  };
  [[nodiscard]] Status load_block();
  // How many rows of the map may go now, in one message.
  std::uint64_t allowed(const Pending& pending) const;
  RowMessage message(Pending& pending, std::uint64_t count);
  void pack(const Pending& pending, RowMessage& message) const;
  void place(const Pending& pending, const RowMessage& message) const;
  std::uint32_t length_of(std::uint64_t block_row) const;
  std::uint64_t offset_of(std::uint64_t block_row) const;
  std::uint64_t bytes_of(const Pending& pending, std::uint64_t count) const;

  Input& input_;
  const parity::Layout& to_;
  WindowSize window_;
  std::size_t block_bytes_;
  Row next_ = 0;
  RowBatch block_;
  std::vector<std::uint64_t> offsets_;  // of the block's rows; variable records
  std::vector<Pending> strips_;
  std::vector<Destination> destinations_;
};

class RowReceiver {
 public:
  // output outlives the receiver. length: of the whole file.
  RowReceiver(Output& output, const FileLength& file_length, const WindowSize& window);
  [[nodiscard]] Status open();

  // Where rows of fixed length may be put by others: row r at r mod window().rows. Empty for variable ones.
  const SharedMemory& memory() const { return ring_; }

  // kInvalid for rows that were not asked for (outside the window, twice, of the wrong size).
  [[nodiscard]] Status accept(RowMessage message);
  // Writes what it can; also needed once before the first message.
  [[nodiscard]] Status advance();
  // The length is the most that the file may have: end() says how many rows there are. Records of one length all have
  // it then.
  void leave_open() { is_open_ = true; }
  // kInvalid: rows beyond these have come.
  [[nodiscard]] Status end(Row rows);
  Row settled() const { return settled_; }
  bool is_done() const { return settled_ == rows_ && !is_open_; }

 private:
  struct Slot {
    std::shared_ptr<net::Buffer> body;  // empty: not here yet
    const std::byte* data = nullptr;
    std::uint32_t length = 0;
  };
  // The distance of a row from the message's first; gaps are empty where rows follow from its stride.
  static std::uint64_t distance_of(const RowMessage& message, const RowGaps& gaps, std::uint64_t i);
  [[nodiscard]] Status tick_off(const RowMessage& message, const RowGaps& gaps);
  [[nodiscard]] Status accept_fixed(const RowMessage& message, const RowGaps& gaps, std::span<const std::byte> data);
  [[nodiscard]] Status accept_variable(const RowMessage& message, const RowGaps& gaps, std::span<const std::byte> data,
                                       std::shared_ptr<net::Buffer> body);
  [[nodiscard]] Status advance_fixed();
  [[nodiscard]] Status advance_variable();
  [[nodiscard]] Status write_gathered();
  [[nodiscard]] Status not_asked_for(const RowMessage& message) const;
  std::uint64_t rows_in(Row first) const;  // of the piece that starts there

  Output& output_;
  WindowSize window_;
  Row rows_ = 0;
  bool is_open_ = false;
  std::uint32_t last_bytes_ = 0;  // of row rows_ - 1, fixed records
  Row settled_ = 0;
  SharedMemory ring_;                   // fixed: the window's rows
  std::vector<std::uint64_t> missing_;  // fixed: rows that each piece of the ring still lacks
  std::vector<Slot> slots_;             // variable: the window's rows
  RowBatch gathered_;                   // variable: in order, not yet written
};

}  // namespace pif::tool
