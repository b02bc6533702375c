// Values that several functions of the C interface take and give.
#pragma once

#include <span>
#include <string>

#include "pif/base/inheriting.h"
#include "pif/client/client.h"
#include "pif/client/pif.h"

namespace pif::c_api {

// kInvalid: an attribute without a name or a value.
inline Result<CreateOptions> options_of(const pif_create_options* options) {
  CreateOptions out;
  if (options == nullptr) return out;
  switch (options->kind) {
    case PIF_VARIABLE: out.format = Format::variable(); break;
    case PIF_DELIMITED: out.format = Format::delimited(options->delimiter); break;
    default:
      if (options->record_length != 0) out.format = Format::fixed(options->record_length);
  }
  out.exclusive = options->exclusive != 0;
  out.placed = options->placed != 0;
  out.width = options->width;
  if (options->nodes != nullptr) out.nodes.assign(options->nodes, options->nodes + options->node_count);
  static_assert(PIF_NO_BEVIES == kNoBevies);
  out.bevy = options->bevy;
  if (options->mode != 0) out.mode = options->mode;
  if (options->attributes == nullptr && options->attribute_count > 0)
    return fail(Code::kInvalid, "NULL was given for \"attributes\"");
  for (const pif_attribute& attribute : std::span(options->attributes, options->attribute_count)) {
    if (attribute.name == nullptr || attribute.value == nullptr)
      return fail(Code::kInvalid, "NULL was given for an attribute's name or value");
    out.attributes.emplace(attribute.name, attribute.value);
  }
  return out;
}

inline Client::Mode mode_of(pif_mode mode) {
  return mode == PIF_WRITE ? Client::Mode::kWrite : mode == PIF_HOLD ? Client::Mode::kHold : Client::Mode::kRead;
}

inline AttributeChange change_of(const pif_attribute_change& change) {
  AttributeChange out;
  if (change.sets_mode != 0) out.mode = change.mode;
  if (change.sets_owner != 0) out.owner = change.owner;
  if (change.sets_group != 0) out.group = change.group;
  if (change.sets_modified != 0) out.modified_ns = change.modified_ns;
  return out;
}

// Not 0 of `each` ends it.
inline Status tell_attributes(const std::map<std::string, std::string>& attributes, pif_attribute_function each,
                              void* user) {
  for (const auto& [name, value] : attributes) {
    if (each(user, name.c_str(), value.c_str()) != 0) break;
  }
  return {};
}

inline pif_stat_info info_of(const Entry& entry) {
  pif_stat_info info{};
  info.id = entry.id;
  info.records = entry.file_length.records;
  info.bytes = entry.file_length.bytes;
  info.modified_ns = entry.modified_ns;
  info.owner = entry.owner;
  info.group = entry.group;
  info.mode = entry.mode;
  info.is_folder = entry.kind == EntryKind::kFolder;
  if (info.is_folder != 0) return info;
  info.is_placed = entry.is_placed;
  info.record_length = entry.format.record_length;
  info.width = static_cast<uint32_t>(entry.nodes.size());
  info.kind = static_cast<pif_record_kind>(entry.format.kind);
  info.delimiter = entry.format.delimiter;
  return info;
}

// All pages, which `page` gives by the name after which they begin.
template <typename Page>
Status list_all(const Page& page, pif_list_function each, void* user) {
  std::string after;
  while (true) {
    PIF_TRY_VALUE(const ListPage now, page(after));
    for (const Entry& entry : now.entries) {
      const pif_stat_info info = info_of(entry);
      if (each(user, entry.name.c_str(), &info) != 0) return {};
    }
    if (!now.more || now.entries.empty()) return {};
    after = now.entries.back().name;
  }
}

}  // namespace pif::c_api
