# Runs a browser for as long as MyClaw holds the other end of the pipe `lifeline`, then removes its files. The system
# closes that end however MyClaw ends, also when it is killed.
# Arguments: the agent-browser program, the browser's directory (also the current one).
exec 3<lifeline
"$1" --json open 3<&- || exit 1
read -r _ <&3
"$1" close >/dev/null 2>&1 3<&-
cd / && rm -rf "$2"
