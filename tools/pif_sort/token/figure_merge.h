// Figure 5.4 of Dibble 1990 itself: the token carries one key, and every record costs a hop. The figure's words are in
// quotes. To be right on every input it also needs this:
//
//   - A reader that has written its last record goes on: that its file is over is noticed when a token comes to it.
//   - A token that says "write all" there ends the merge, for both sides are over.
//   - Who begins without a record sends a token that says "write all".
//   - With unique, the token also carries the key of the last record that was written: a record with the same key is
//     passed over.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "pif/tool/channel.h"
#include "token/token_merge.h"

namespace pif::sort {

class FigureMerge final : public Merge {
 public:
  // channel: of the merge's own. The shape's blocks have one record.
  FigureMerge(tool::Talk& talk, std::uint32_t channel, Clock& clock, MergeShape shape, unsigned side,
              std::uint32_t index, Part& part, Outlet& outlet);

  // token {WriteAll, Key, Source, Number}; its key is the end of the body.
  struct Token {
    bool write_all = false;
    std::uint32_t source = 0;  // rank of the reader whose key it is
    std::uint64_t number = 0;
    std::uint64_t last_bytes = 0;  // of the body, in front: the key of the last record that was written
    static auto members(auto& self) { return std::tie(self.write_all, self.source, self.number, self.last_bytes); }
  };
  struct End {  // the merge is over
    static auto members(auto&) { return std::tie(); }
  };
  using Word = std::variant<Token, End, MoreOfToken>;

 private:
  struct Arrived {
    Token token;
    std::string last, key;
  };
  [[nodiscard]] Status start() override;
  [[nodiscard]] Result<bool> go_on() override;
  [[nodiscard]] Status loop(const Token& token, std::string_view last, std::string_view key);
  [[nodiscard]] Status send(std::uint32_t reader, Token token, std::string_view last, std::string_view key);
  [[nodiscard]] Status end_everywhere();
  [[nodiscard]] Status take(const tool::Channel<Word>::Item& item);
  std::uint32_t my_name() const { return own().ranks[index_]; }
  bool is_eof() const { return next_ >= own().records; }

  // A token may come to a reader without records.
  bool is_done() const override { return over_ && Merge::is_done(); }
  bool may_be_over() const override { return is_eof(); }  // each record is written when a token comes

  tool::Channel<Word> tokens_;
  std::optional<Arrived> arrived_;
  bool over_ = false;
  std::uint64_t next_ = index_;  // this reader's next record, counted in its file
};

}  // namespace pif::sort
