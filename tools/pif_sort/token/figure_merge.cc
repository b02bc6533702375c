#include "token/figure_merge.h"

namespace pif::sort {

FigureMerge::FigureMerge(tool::Talk& talk, std::uint32_t channel, Clock& clock, MergeShape shape, unsigned side,
                         std::uint32_t index, Part& part, Outlet& outlet)
    : Merge(clock, std::move(shape), side, index, part, outlet),
      tokens_(talk, channel, {}, [this](const tool::Channel<Word>::Item& item) { return take(item); }) {}

// "If this process initiates the merge: build a token {false, key, MyName, 0}, where key is the first key in the local
// file; send the token to the first reading process for the other file."
Status FigureMerge::start() {
  if (other().ranks.empty()) return send(my_name(), {true, my_name(), 0}, {}, {});  // a merge with nothing
  if (is_eof()) return send(other().ranks.front(), {true, my_name(), 0}, {}, {});
  PIF_TRY_VALUE(const Block* const record, load(0));
  return send(other().ranks.front(), {false, my_name(), 0}, {}, record->keys[0]);
}

// The figure's loop, from "receive token" on.
Status FigureMerge::loop(const Token& token, std::string_view last, std::string_view key) {
  if (is_eof()) {
    if (!token.write_all) return send(token.source, {true, my_name(), token.number}, last, {});
    if (shape_.unique) result_ = token.number;
    return end_everywhere();
  }
  PIF_TRY_VALUE(Block* const record, load(next_));
  const std::string_view mine = record->keys[0];
  if (!token.write_all && mine > key) {
    ++counts_.crossings;
    return send(token.source, {false, my_name(), token.number}, last, mine);
  }
  const bool is_again = is_same(last, mine);
  PIF_TRY(send(reader(own(), next_ + 1), {token.write_all, token.source, token.number + (is_again ? 0 : 1)},
               shape_.unique ? mine : last, key));
  is_again ? drop(*record) : ship(*record, 0, token.number);
  shipped(next_);
  next_ += own().ranks.size();
  return {};
}

Status FigureMerge::send(std::uint32_t reader, Token token, std::string_view last, std::string_view key) {
  token.last_bytes = last.size();
  net::Buffer whole = body_of(last, net::Buffer::copy_of(std::as_bytes(std::span(key))));
  PIF_TRY_VALUE(net::Buffer body, send_ahead(std::move(whole), [&](net::Buffer part) {
                  return tokens_.send(reader, MoreOfToken(), std::move(part));
                }));
  return tokens_.send(reader, token, std::move(body));
}

Status FigureMerge::end_everywhere() {
  for (const SideShape& side : shape_.sides) {
    for (const std::uint32_t rank : side.ranks) PIF_TRY(tokens_.send(rank, End()));
  }
  return {};
}

Status FigureMerge::take(const tool::Channel<Word>::Item& item) {
  const auto is_known = [this](std::uint32_t rank) { return reads(own(), rank) || reads(other(), rank); };
  if (!is_known(item.from) || over_ || arrived_) return does_not_fit("a word");
  if (std::holds_alternative<MoreOfToken>(item.head)) return take_ahead(item.from, item.body.span());
  const Token* const token = std::get_if<Token>(&item.head);
  if (token == nullptr) {
    if (!may_be_over() || has_sent_ahead(item.from)) return does_not_fit("its end");
    over_ = true;
    return {};
  }
  const auto body = whole_body(item.from, item.body.span());
  const bool has_last = token->last_bytes > 0;
  const bool last_fits =
      token->last_bytes <= body.size() && (!has_last || (shape_.unique && token->last_bytes >= kNumberBytes));
  if (!is_known(token->source) || token->number > all_records() || !last_fits) return does_not_fit("a token");
  ++counts_.hops;
  const std::string_view all(reinterpret_cast<const char*>(body.data()), body.size());
  arrived_ = {*token, std::string(all.substr(0, token->last_bytes)), std::string(all.substr(token->last_bytes))};
  return {};
}

Result<bool> FigureMerge::go_on() {
  if (!arrived_ || !has_room() || (!is_eof() && !is_full(next_))) return false;
  const Arrived arrived = std::move(*arrived_);
  arrived_.reset();
  const Time begin = clock_.now();
  PIF_TRY(loop(arrived.token, arrived.last, arrived.key));
  counts_.acted += clock_.now() - begin;
  return true;
}

}  // namespace pif::sort
