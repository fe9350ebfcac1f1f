package outlook

import "github.com/gangrun/gangrun/internal/diagnose/textmatch"

// login matches what a shell says about the scripts that it runs before it begins with a job. It also matches what
// commands in these scripts say because a job has no terminal.
var login = textmatch.New(`(?i)^(?:-?(?:ba|z|c|tc|k|da)?sh: )?(?:line \d+: )?["']?(?:/etc/(?:profile|bash\.?bashrc|bashrc|csh\.\w+|z\w*|motd|environment|inputrc|update-motd\.d|default)\b[^\s:]*|(?:~|\$HOME|/\S*)/\.(?:bash\w*|profile|cshrc|tcshrc|login|logout|zsh\w*|zprofile|kshrc|aliases|inputrc|Xauthority|dircolors)|\S*/(?:motd|issue|welcome|banner|greeting|login|logout)(?:\.\w+)?)["']?: |` +
	`^(?:\S*/)?(?:stty|tset|mesg|tput|tty|biff|xauth|xhost|xset|dircolors|lesspipe|manpath|fortune|neofetch|screenfetch|setterm|resize|reset)(?:: | error: )|^-?(?:ba|z)?sh: (?:cannot set terminal process group|no job control in this shell|warning: setlocale|/dev/tty: )|^(?:perl: warning: (?:Setting|Falling)|(?:\S*/)?(?:groups|id|whoami): cannot find name|fatal: (?:not a git repository|detected dubious ownership|unsafe repository|[Nn]o (?:names|tags?) )|(?:/\S*/)?(?:nvidia-smi|rocm-smi|dcgmi|lscpu|lspci|lstopo\S*|hwloc-\S+|ibstat\w*|dmidecode|lsb_release|git|svn|quota|sensors|ethtool|mailx?|sendmail|mutt|msmtp|notify-send): |(?:\S+ ){0,6}(?:sshd|crond?|dbus-daemon|sssd\w*|rsyslogd|chronyd|ntpd|polkitd|postfix\S*|NetworkManager|snmpd|dhclient|auditd|irqbalance|smartd|avahi-daemon|cupsd|systemd-(?:logind|udevd|journald|resolved|timesyncd)|gdm\S*|gnome-\S+|nscd|nslcd)\[\d+\]: |X11 forwarding request failed|Warning: No xauth data|TERM environment variable not set)|` +
	`^(?:\S+: (?:line )?\d+: )(?:\S*/)?` + watcher + `: (?:(?:command )?not found|No such file)|^(?:\S+: (?:line )?\d+: )?(?:\S*/)?(?:g?zip|zcat|gunzip|bz(?:ip2|cat)|xz(?:cat)?|zstd(?:cat)?|pigz|cat|tac|sort|uniq|cut|tr|sed|[gm]?awk|[efz]?grep|rg|find|ls|seq|yes|tar|tee|paste|join|comm|xargs|printf|echo|ps|du|df|jq|nl|od|xxd|strings|base64|shuf|dd|head|tail|column|rev|samtools|bcftools|bedtools): (?:.*\bBroken pipe\b|write (?:failed|error)\W*$)`)

// watcher matches a command that only shows the state of a machine or is otherwise not needed by the job.
const watcher = `(?:nvidia-smi|rocm-smi|amd-smi|xpu-smi|dcgmi|nvtop|htop|top|lscpu|lspci|lstopo|sensors|ipmitool|perf|vmstat|iostat|mpstat|pidstat|dstat|sar|nvme|smartctl|ibstat|ibstatus|ibv_devinfo|figlet|cowsay|neofetch|fortune|tree|bc|mailx?|sendmail|mutt|msmtp|notify-send)`

// Login reports whether a line comes from the scripts that a shell runs before it begins with a job.
func Login(t string) bool {
	return len(t) < longLine && login.MatchString(stamp.ReplaceAllString(t, ""))
}

// stamp matches the time with which a line may begin.
var stamp = textmatch.New(`^\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?Z?\]? `)

// Tolerated reports whether a line shows that the author of the script or makefile expected a command to fail, and let
// the script go on, as by "|| true".
func Tolerated(t string) bool { return len(t) < longLine && tolerated.MatchString(t) }

var tolerated = textmatch.New(`^(?:\S*/)?g?make(?:\[\d+\])?: .*\(ignored\)$|^\.\.\.ignoring$|^\S+: (?:line )?\d+: +\d+ [A-Z].* \|\| (?:true|:|exit 0|echo\b.*|printf\b.*|\w*warn\w*\b.*)[)};]*$`)
