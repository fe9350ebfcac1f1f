package logtext

import (
	"slices"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// phrase is what the C library or a shell says, in English and in other languages. The other languages are Chinese,
// German, French, Spanish, Italian, Portuguese, Russian, Japanese, Korean and Polish.
type phrase struct {
	english string
	foreign []string
}

// phrases has texts that may occur anywhere in a line.
var phrases = []phrase{
	{"No such file or directory", []string{"没有那个文件或目录", "沒有此一檔案或目錄", "Datei oder Verzeichnis nicht gefunden", "Aucun fichier ou dossier de ce type", "Aucun fichier ou dossier de ce nom", "Aucun fichier ou répertoire de ce type", "No existe el archivo o el directorio", "No existe el fichero o el directorio", "File o directory non esistente", "Arquivo ou diretório inexistente", "Arquivo ou diretório não encontrado", "Ficheiro ou directoria inexistente", "Нет такого файла или каталога", "そのようなファイルやディレクトリはありません", "그런 파일이나 디렉터리가 없습니다", "Nie ma takiego pliku ani katalogu"}},
	{"command not found", []string{"未找到命令", "Befehl nicht gefunden", "Kommando nicht gefunden", "commande introuvable", "orden no encontrada", "no se encontró la orden", "comando non trovato", "comando não encontrado", "команда не найдена", "コマンドが見つかりません", "명령어를 찾을 수 없음", "nie znaleziono polecenia"}},
	{"Permission denied", []string{"权限不够", "拒絕不符權限的操作", "Keine Berechtigung", "Permission non accordée", "Permiso denegado", "Permesso negato", "Permissão negada", "Отказано в доступе", "許可がありません", "허가 거부", "Brak dostępu"}},
	{"No space left on device", []string{"设备上没有空间", "裝置上已無多餘空間", "Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "Aucun espace disponible sur le périphérique", "No queda espacio en el dispositivo", "Spazio esaurito sul device", "Não há espaço disponível no dispositivo", "На устройстве не осталось свободного места", "デバイスに空き領域がありません", "장치에 남은 공간이 없음", "Brak miejsca na urządzeniu"}},
	{"Disk quota exceeded", []string{"超出磁盘限额", "Der zugewiesene Plattenplatz", "Débordement du quota d'espace disque", "Se ha excedido la cuota de disco", "Quota de disco excedida", "Превышена дисковая квота", "ディスク使用量制限を超過しました"}},
	{"Cannot allocate memory", []string{"无法分配内存", "Nicht genügend Hauptspeicher verfügbar", "Impossible d'allouer de la mémoire", "No se pudo asignar memoria", "Impossibile allocare memoria", "Não é possível alocar memória", "Не удалось выделить память", "メモリを確保できません", "메모리를 할당할 수 없습니다"}},
	{"Input/output error", []string{"输入/输出错误", "Eingabe-/Ausgabefehler", "Erreur d'entrée/sortie", "Error de entrada/salida", "Errore di input/output", "Erro de entrada/saída", "Ошибка ввода/вывода", "入力/出力エラーです"}},
	{"Connection refused", []string{"拒绝连接", "连接被拒绝", "Verbindungsaufbau abgelehnt", "Connexion refusée", "Conexión rehusada", "Connessione rifiutata", "Conexão recusada", "В соединении отказано", "接続を拒否されました", "연결이 거부됨"}},
	{"Address already in use", []string{"地址已在使用", "Die Adresse wird bereits verwendet", "Adresse déjà utilisée", "La dirección ya se está usando", "Indirizzo già in uso", "Endereço já em uso", "Адрес уже используется", "アドレスは既に使用中です"}},
	{" (core dumped)", []string{"（核心已转储）", " (核心已转储)", "(核心已转储)", "（吐核）", " (吐核)", "(吐核)", " (Speicherabzug geschrieben)", " (image mémoire créée)", " (`core' generado)", " (core generado)", " (core dump creato)", " (imagem do núcleo gravada)", " (стек памяти сброшен на диск)", " (сделан дамп памяти)", " (コアダンプ)", "(コアダンプ)", " (zrzut pamięci)"}},
}

// deaths has the words of a shell for the end of its child. Such a word is the whole line, or it follows the number of
// the script's line and the PID of the child.
var deaths = []phrase{
	{"Killed", []string{"已杀死", "已砍掉", "已殺死", "Getötet", "Processus arrêté", "Tué", "Matado", "Terminado (killed)", "Ucciso", "Morto", "Убито", "強制終了", "죽었음", "Unicestwiony"}},
	{"Terminated", []string{"已终止", "终止", "終止", "Beendet", "Complété", "Terminé", "Terminado", "Terminato", "Завершено", "終了しました", "종료됨", "Zakończony"}},
	{"Segmentation fault", []string{"段错误", "程式記憶體區段錯誤", "Speicherzugriffsfehler", "Erreur de segmentation", "Violación de segmento", "Errore di segmentazione", "Falha de segmentação", "Ошибка сегментирования", "セグメンテーション違反です", "セグメンテーション違反", "세그멘테이션 오류", "세그멘테이션 결함", "Naruszenie ochrony pamięci"}},
	{"Aborted", []string{"已放弃", "已中止", "中止", "Abgebrochen", "Abandon", "Abortado", "Annullato", "Аварийный останов", "Аварийное завершение", "アボートしました", "중지됨", "Przerwane", "Abort trap: 6", "Abort"}},
	{"Bus error", []string{"总线错误", "Bus-Zugriffsfehler", "Erreur de bus", "Erreur du bus", "Error del bus", "Errore di bus", "Erro de barramento", "Ошибка шины", "バスエラー", "버스 오류", "Bus error: 10", "Bus error: 7"}},
	{"Floating point exception", []string{"浮点数例外", "浮点异常", "Gleitkomma-Ausnahme", "Exception en point flottant", "Excepción de coma flotante", "Exceção de ponto flutuante", "Ошибка в вычислениях с плавающей точкой", "浮動小数点例外", "Floating point exception: 8"}},
	{"Illegal instruction", []string{"非法指令", "Ungültiger Maschinenbefehl", "Instruction non permise", "Instrucción ilegal", "Instrução ilegal", "Недопустимая инструкция", "Illegal instruction: 4"}},
	{"Killed", []string{"Killed: 9"}},
	{"Terminated", []string{"Terminated: 15"}},
	{"Segmentation fault", []string{"Segmentation fault: 11"}},
}

// foreignLine matches how a shell names a line of its script in other languages.
var foreignLine = textmatch.New(`: (?:第 ?(\d+) ?行|(\d+) 行|(?:行|Zeile|ligne|línea|linha|riga|строка|줄|linia) ?(\d+)) ?[:：] ?`)

// childOf matches the PID of a shell's child at the beginning of a text.
var childOf = textmatch.New(`^ *\d+ +`)

var foreignWords = sync.OnceValue(func() *textmatch.Index { return textmatch.IndexOf(ForeignNeedles()) })

// ForeignNeedles returns texts for a quick search: English translates only lines with one of them.
func ForeignNeedles() (all []string) {
	for _, p := range slices.Concat(phrases, deaths) {
		for _, f := range p.foreign {
			if f = lowered(f); len(f) >= 4 && !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// lowered returns a text with its ASCII letters in lower case.
func lowered(t string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, t)
}

// English returns a line with the messages of the C library and of shells translated into English.
func English(t string) string {
	if !foreignWords().Contains(t) {
		return t
	}
	for _, p := range phrases {
		for _, f := range p.foreign {
			t = strings.ReplaceAll(t, f, p.english)
		}
	}
	head, rest := "", t
	if m := foreignLine.FindStringSubmatch(t); m != nil {
		at := foreignLine.FindStringIndex(t)
		head, rest = t[:at[0]]+": line "+m[1]+m[2]+m[3]+": ", t[at[1]:]
		t = head + rest
	} else if i := strings.Index(t, ": line "); i >= 0 {
		if j := strings.Index(t[i+2:], ": "); j >= 0 {
			head, rest = t[:i+j+4], t[i+j+4:]
		}
	}
	if child := childOf.FindStringIndex(rest); head != "" && child != nil {
		head, rest = head+rest[:child[1]], rest[child[1]:]
	}
	for _, p := range deaths {
		for _, f := range p.foreign {
			after, ok := strings.CutPrefix(rest, f)
			if ok && (after == "" || strings.HasPrefix(after, " (core dumped)") || head != "" && strings.HasPrefix(after, " ")) {
				return head + p.english + after
			}
		}
	}
	return t
}
