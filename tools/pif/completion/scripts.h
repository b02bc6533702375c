// Scripts by which a shell completes command lines of pif: it asks `pif complete` for each.
#pragma once

#include <string_view>

namespace pif::cli {

inline constexpr std::string_view kBashScript = R"(# Completion of pif for bash: to be sourced.
_pif() {
  local current=${COMP_WORDS[COMP_CWORD]} line
  local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  [[ $current == = || $current == : ]] && current=
  # A word that is being quoted comes as it is typed.
  words[${#words[@]}-1]=${words[${#words[@]}-1]#[\'\"]}
  words[${#words[@]}-1]=${words[${#words[@]}-1]//\\/}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current") ;;
      :folders) compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$current") ;;
      /* | pif:/*) compopt -o filenames 2>/dev/null; COMPREPLY+=("$line") ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <(command "${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _pif pif
)";

inline constexpr std::string_view kZshScript = R"(#compdef pif
# Completion of pif for zsh: a file _pif in a folder of $fpath, or source it behind compinit.
_pif() {
  local line name
  local -a current names shown folders
  current=("${(@Q)words[2,CURRENT]}")
  while IFS= read -r line; do
    case $line in
      (:files) _files ;;
      (:folders) [[ $PREFIX == --*=* ]] && compset -P '*='; _files -/ ;;
      (*/) folders+=("$line") ;;
      (*)
        name=${line%%$'\t'*}
        names+=("$name")
        if [[ $line == *$'\t'?* ]]; then shown+=("$name -- ${line#*$'\t'}"); else shown+=("$name"); fi ;;
    esac
  done < <(command "${words[1]}" complete -- "${current[@]}" 2>/dev/null)
  (( ${#folders} )) && compadd -S '' -- "${folders[@]}"
  (( ${#names} )) && compadd -l -d shown -- "${names[@]}"
}
if [[ ${funcstack[1]} == _pif ]]; then _pif "$@"; else compdef _pif pif; fi
)";

inline constexpr std::string_view kFishScript =
    R"(# Completion of pif for fish: to be sourced, or in a folder of $fish_complete_path.
function __pif_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    for line in (command $typed[1] complete -- $typed[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':folders'
                __fish_complete_directories "$current"
            case '*'
                echo $line
        end
    end
end
complete -c pif -f -a '(__pif_complete)'
)";

}  // namespace pif::cli
