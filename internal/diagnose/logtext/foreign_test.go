package logtext

import "testing"

// TestEnglish checks that the words of the C library and of shells are translated from other languages into English.
func TestEnglish(t *testing.T) {
	for in, want := range map[string]string{
		"已杀死":     "Killed",
		"Getötet": "Killed",
		"Speicherzugriffsfehler (Speicherabzug geschrieben)":                                  "Segmentation fault (core dumped)",
		"段错误（核心已转储）":                                                                          "Segmentation fault (core dumped)",
		"go.sh: Zeile 7: 4711 Getötet                ./solve":                                 "go.sh: line 7: 4711 Killed                ./solve",
		"go.sh: 行 7:  4711 已杀死               ./solve":                                         "go.sh: line 7:  4711 Killed               ./solve",
		"go.sh: 第 7 行： 4711 段错误               ./solve":                                        "go.sh: line 7: 4711 Segmentation fault               ./solve",
		"go.sh: ligne 3 : srunn : commande introuvable":                                       "go.sh: line 3: srunn : command not found",
		"cp: Aufruf von stat für 'a.h5' nicht möglich: Datei oder Verzeichnis nicht gefunden": "cp: Aufruf von stat für 'a.h5' nicht möglich: No such file or directory",
		"cat: a.dat: Нет такого файла или каталога":                                           "cat: a.dat: No such file or directory",
		"go.sh: line 3:  4711 Abort trap: 6           ./solve":                                "go.sh: line 3:  4711 Aborted           ./solve",
		"Segmentation fault: 11":                                                              "Segmentation fault",
		"Entrenamiento Terminado":                                                             "Entrenamiento Terminado",
		"Terminado en 3 s":                                                                    "Terminado en 3 s",
		"step 3":                                                                              "step 3",
	} {
		if got := English(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
